//! Raw connections of the gateway: events for this worker, and its calls.
//!
//! Used by [`crate::events`] and `callbacks/streams.rs`. Invariants: an event is passed on when all of its
//! pieces have arrived; calls leave in their order, and become visible to the gateway when the worker
//! acknowledges an item, waits, or has filled the ring, so that a response and its acknowledgement
//! arrive together or not at all.

use crate::kept_memory::wipe;
use crate::link::Link;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Operation, Part};
use outboard_ring::spsc::Corrupt;
use outboard_ring::stream::{StreamCall, StreamEvent, Verb};
use std::collections::VecDeque;

/// An event with all of its bytes.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) kind: u8,
    pub(crate) port: u16,
    pub(crate) item: u64,
    pub(crate) session: u64,
    pub(crate) bytes: Vec<u8>,
    /// Whether the gateway is to know that it begins.
    is_suspect: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Bytes of an item that has not arrived completely.
    partial: Vec<u8>,
    ready: VecDeque<Received>,
    /// The event that C has.
    current: Received,
    /// The result of the last query.
    result: Vec<u8>,
    scratch: Vec<u8>,
    /// Whether this worker takes items.
    has_joined: bool,
}

impl Streams {
    /// Receives a frame; returns whether it completes an event.
    pub(crate) fn receive(&mut self, payload: &[u8]) -> Result<bool, Corrupt> {
        let event = StreamEvent::decode(payload)?;
        // Events without an item come between the pieces of one.
        if event.item != 0 && !(event.is_last && self.partial.is_empty()) {
            self.partial.extend_from_slice(event.bytes);
            if !event.is_last {
                return Ok(false);
            }
        }
        let bytes = match event.item != 0 && !self.partial.is_empty() {
            true => std::mem::take(&mut self.partial),
            false => event.bytes.to_vec(),
        };
        self.ready.push_back(Received {
            kind: event.kind as u8,
            port: event.port,
            item: event.item,
            session: event.session,
            bytes,
            is_suspect: event.is_suspect,
        });
        Ok(true)
    }

    /// The next event; it stays until the next call.
    pub(crate) fn take(&mut self, link: &mut Link) -> Result<Option<&Received>, Corrupt> {
        let Some(next) = self.ready.pop_front() else { return Ok(None) };
        if next.is_suspect {
            let (verb, item) = (Verb::Start, next.item);
            let call = StreamCall { verb, is_last: true, item, session: 0, value: 0, bytes: b"" };
            self.call(link, &call)?;
            link.publish();
        }
        self.current = next;
        Ok(Some(&self.current))
    }

    /// Makes a call. Only [`Link::publish`] makes it visible.
    pub(crate) fn call(&mut self, link: &mut Link, call: &StreamCall<'_>) -> Result<(), Corrupt> {
        link.check()?;
        self.has_joined = match call.verb {
            Verb::Join => true,
            Verb::Leave => false,
            _ => self.has_joined,
        };
        let mut rest = call.bytes;
        loop {
            let (piece, tail) = rest.split_at(rest.len().min(link.largest_piece_bytes / 2));
            let call = StreamCall { is_last: tail.is_empty(), bytes: piece, ..*call };
            let call = Call::Stream(call);
            Operation { id: Tag::default(), span: 0, call }.encode(&mut self.scratch);
            let sent = link.send_always(FrameKind::Operation, Tag::default(), &[&self.scratch]);
            wipe(&mut self.scratch);
            sent?;
            rest = tail;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Makes a query, and blocks the worker until the gateway has its result, which stays until the next
    /// one.
    pub(crate) fn query(
        &mut self,
        link: &mut Link,
        call: StreamCall<'_>,
    ) -> Result<&[u8], Corrupt> {
        let payload = link.call(Tag::default(), Call::Stream(call), b"")?;
        let Part::Queried(result) = Completion::decode(&payload)?.part else {
            return Err(Corrupt { what: "a query about connections with another result" });
        };
        self.result = result.to_vec();
        Ok(&self.result)
    }

    /// The worker is to stop: it takes no more items.
    pub(crate) fn leave(&mut self, link: &mut Link) -> Result<(), Corrupt> {
        if self.has_joined {
            let verb = Verb::Leave;
            let call =
                StreamCall { verb, is_last: true, item: 0, session: 0, value: 0, bytes: b"" };
            self.call(link, &call)?;
            link.publish();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_ring::stream::EventKind;

    fn frame(item: u64, is_last: bool, bytes: &[u8]) -> Vec<u8> {
        let mut payload = Vec::new();
        let kind = if item == 0 { EventKind::Full } else { EventKind::Data };
        StreamEvent { kind, is_last, is_suspect: false, port: 1, item, session: 9, bytes }
            .encode(&mut payload);
        payload
    }

    #[test]
    fn pieces_become_one_event_and_others_come_between() {
        let mut streams = Streams::default();
        assert_eq!(streams.receive(&frame(5, false, b"one ")), Ok(false));
        assert_eq!(streams.receive(&frame(0, true, b"")), Ok(true));
        assert_eq!(streams.receive(&frame(5, true, b"two")), Ok(true));
        assert_eq!(streams.receive(&frame(6, true, b"three")), Ok(true));
        let mut taken = Vec::new();
        while let Some(event) = streams.ready.pop_front() {
            taken.push((event.item, event.bytes));
        }
        assert_eq!(taken, [(0, b"".to_vec()), (5, b"one two".to_vec()), (6, b"three".to_vec())]);
        assert!(streams.receive(b"short").is_err());
    }
}
