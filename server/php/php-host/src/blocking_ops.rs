//! Operations that block the worker: in classic mode, which has nothing to do meanwhile.
//!
//! Used by the request's exchange. Invariant: a call returns with the gateway's result; the gateway
//! enforces the request's deadline.

use crate::fetches::{FetchResult, Fetches};
use crate::link::Link;
use outboard_ring::frame::Tag;
use outboard_ring::operation::Call;
use outboard_ring::spsc::Corrupt;

/// The request's one operation, and its result until it is freed.
#[derive(Debug, Default)]
pub(crate) struct BlockingOps {
    fetches: Fetches,
    current: Option<u64>,
}

impl BlockingOps {
    /// Sends the operation and waits for its result. False if the ring is corrupt.
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

    pub(crate) fn result(&mut self) -> Option<FetchResult<'_>> {
        self.fetches.result(self.current?)
    }

    pub(crate) fn free(&mut self, link: &mut Link) -> Result<(), Corrupt> {
        match self.current.take() {
            Some(id) => self.fetches.free(link, id),
            None => Ok(()),
        }
    }
}
