//! Operations that a request waits for without a coroutine: in classic mode, where the worker has
//! nothing else to do meanwhile.
//!
//! Used by the request's exchange. Invariant: when it returns, the gateway has answered; how long
//! that may take is the request's deadline, which the gateway keeps.

use crate::fetches::{FetchResult, Fetches};
use crate::link::Link;
use outboard_ring::frame::Tag;
use outboard_ring::operation::Call;
use outboard_ring::spsc::Corrupt;

/// The one operation that a request can wait for, and its answer until it is freed.
#[derive(Debug, Default)]
pub(crate) struct BlockingOps {
    fetches: Fetches,
    current: Option<u64>,
}

impl BlockingOps {
    /// Has the gateway do it and waits. False when the ring is broken.
    pub(crate) fn call(
        &mut self,
        link: &mut Link,
        request: Tag,
        call: Call<'_>,
        body: &[u8],
    ) -> bool {
        let called = self.send_and_wait(link, request, call, body);
        called.inspect_err(|corrupt| link.set_broken(*corrupt)).is_ok()
    }

    fn send_and_wait(
        &mut self,
        link: &mut Link,
        request: Tag,
        call: Call<'_>,
        body: &[u8],
    ) -> Result<(), Corrupt> {
        self.free(link)?;
        let id = self.fetches.begin(link, request, 0, call, body)?;
        self.current = Some(id);
        while self.fetches.result(id).is_none() {
            let completion = link.next_completion()?;
            self.fetches.receive(completion)?;
        }
        Ok(())
    }

    /// What came of it.
    pub(crate) fn result(&mut self) -> Option<FetchResult<'_>> {
        self.fetches.result(self.current?)
    }

    /// The answer is not looked at any more.
    pub(crate) fn free(&mut self, link: &mut Link) -> Result<(), Corrupt> {
        match self.current.take() {
            Some(id) => self.fetches.free(link, id),
            None => Ok(()),
        }
    }
}
