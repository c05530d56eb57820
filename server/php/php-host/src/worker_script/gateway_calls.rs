//! What a script asks of the gateway: fetches, tasks, raw connections.
//!
//! Called by the callbacks. Invariant: a ring that is corrupt fails the calls, and then the worker.

use super::RunningScript;
use crate::link::Link;
use crate::streams::Received;
use outboard_ring::channel::WaitCall;
use outboard_ring::frame::Tag;
use outboard_ring::operation::Call;
use outboard_ring::stream::StreamCall;
use std::cell::RefMut;

impl RunningScript {
    pub(crate) fn count_wait(&mut self, call: WaitCall, blocked_us: Option<u64>) {
        if let Some(events) = &mut self.events {
            events.link.borrow().count_wait(call, blocked_us);
        }
    }

    /// Begins a fetch or a task.
    pub(crate) fn fetch(&mut self, request: Tag, waiter: u64, call: Call<'_>, body: &[u8]) -> u64 {
        let Some(events) = &mut self.events else { return 0 };
        let link = events.link.clone();
        let mut link = link.borrow_mut();
        link.count_wait(WaitCall::Gateway, None);
        events.fetches.begin(&mut link, request, waiter, call, body).unwrap_or_else(|corrupt| {
            events.failed.get_or_insert(corrupt);
            0
        })
    }

    /// The way to the gateway; `None` in a zygote, which has none.
    pub(crate) fn link(&self) -> Option<RefMut<'_, Link>> {
        self.events.as_ref().map(|events| events.link.borrow_mut())
    }

    /// Makes a call about a raw connection; false if there is no gateway.
    pub(crate) fn stream_call(&mut self, call: &StreamCall<'_>, publish: bool) -> bool {
        let Some(events) = &mut self.events else { return false };
        let mut link = events.link.borrow_mut();
        if let Err(corrupt) = events.streams.call(&mut link, call) {
            events.failed.get_or_insert(corrupt);
            return false;
        }
        if publish {
            link.publish();
        }
        true
    }

    /// The next event of a raw connection.
    pub(crate) fn stream_event(&mut self) -> Option<&Received> {
        let events = self.events.as_mut()?;
        match events.streams.take(&mut events.link.borrow_mut()) {
            Ok(received) => received,
            Err(corrupt) => {
                events.failed.get_or_insert(corrupt);
                None
            }
        }
    }

    /// Makes a query about raw connections.
    pub(crate) fn stream_query(&mut self, call: StreamCall<'_>) -> Option<&[u8]> {
        let events = self.events.as_mut()?;
        match events.streams.query(&mut events.link.borrow_mut(), call) {
            Ok(result) => Some(result),
            Err(corrupt) => {
                events.failed.get_or_insert(corrupt);
                None
            }
        }
    }

    /// Frees a fetch, complete or not.
    pub(crate) fn free_fetch(&mut self, operation: u64) {
        let Some(events) = &mut self.events else { return };
        let link = events.link.clone();
        if let Err(corrupt) = events.fetches.free(&mut link.borrow_mut(), operation) {
            events.failed.get_or_insert(corrupt);
        }
    }
}
