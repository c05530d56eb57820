//! [`Streams`]: the open streams of a connection in a slab, and the latest closed ones.
//!
//! Owned by `connection`. Invariants: a key whose stream is closed finds nothing, because identifiers
//! are not used again; the index is sorted, because clients open streams in ascending order.

use crate::stream::{Stream, StreamKey};

/// How many closed streams are remembered.
const CLOSED: usize = 64;

/// Why a frame for a stream that is not open may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The server reset it: frames that were on their way are ignored (RFC 9113 5.1).
    ByReset,
    /// It ended, or the client reset it.
    ByPeer,
    /// Too long ago, or never opened.
    Unknown,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
    /// Open streams, by identifier.
    index: Vec<StreamKey>,
    /// Identifiers, and in the last bit whether the server reset the stream.
    closed: [u32; CLOSED],
    closed_next: usize,
}

impl Streams {
    pub(crate) fn new() -> Self {
        let (slots, free, index) = (Vec::new(), Vec::new(), Vec::new());
        Self { slots, free, index, closed: [0; CLOSED], closed_next: 0 }
    }

    /// The number of open streams.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Adds a stream whose identifier is higher than all earlier ones.
    pub(crate) fn open(&mut self, stream: Stream) -> StreamKey {
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = stream;
                slot
            }
            None => {
                self.slots.push(stream);
                self.slots.len() as u32 - 1
            }
        };
        let key = StreamKey { id, slot };
        self.index.push(key);
        key
    }

    /// Removes a stream; what it owns is up to the caller.
    pub(crate) fn close(&mut self, key: StreamKey, by_reset: bool) {
        if let Ok(at) = self.index.binary_search_by_key(&key.id, |key| key.id) {
            self.index.remove(at);
            self.slots[key.slot()].id = 0;
            self.free.push(key.slot);
            self.closed[self.closed_next % CLOSED] = key.id << 1 | u32::from(by_reset);
            self.closed_next = self.closed_next.wrapping_add(1);
        }
    }

    /// Notes that a stream was refused.
    pub(crate) fn note_refused(&mut self, id: u32) {
        self.closed[self.closed_next % CLOSED] = id << 1 | 1;
        self.closed_next = self.closed_next.wrapping_add(1);
    }

    pub(crate) fn get(&self, key: StreamKey) -> Option<&Stream> {
        self.slots.get(key.slot()).filter(|stream| stream.id == key.id)
    }

    pub(crate) fn get_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.slots.get_mut(key.slot()).filter(|stream| stream.id == key.id)
    }

    /// The open stream of an identifier.
    pub(crate) fn find(&self, id: u32) -> Option<StreamKey> {
        match self.index.last() {
            Some(last) if last.id == id => Some(*last),
            Some(last) if last.id > id => {
                let at = self.index.binary_search_by_key(&id, |key| key.id).ok()?;
                Some(self.index[at])
            }
            _ => None,
        }
    }

    /// Why a stream is not open. `id` is not 0.
    pub(crate) fn why_closed(&self, id: u32) -> Closed {
        match self.closed.iter().find(|closed| **closed >> 1 == id) {
            Some(closed) if closed & 1 == 1 => Closed::ByReset,
            Some(_) => Closed::ByPeer,
            None => Closed::Unknown,
        }
    }

    /// The open stream of position `at`, below [`Self::len`].
    pub(crate) fn at(&self, at: usize) -> Option<StreamKey> {
        self.index.get(at).copied()
    }

    /// Gives back memory for streams that are not open.
    pub(crate) fn shrink(&mut self) {
        if self.index.is_empty() {
            self.slots = Vec::new();
            self.free = Vec::new();
            self.index = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(streams: &mut Streams, id: u32) -> StreamKey {
        streams.open(Stream::new(id, 10, 10))
    }

    #[test]
    fn a_key_of_a_closed_stream_finds_nothing() {
        let mut streams = Streams::new();
        let keys = [1, 3, 5].map(|id| open(&mut streams, id));
        streams.close(keys[1], true);
        let reused = open(&mut streams, 9);
        assert_eq!(reused.slot(), keys[1].slot());
        assert!(streams.get(keys[1]).is_none() && streams.get_mut(reused).is_some());
        assert_eq!(
            [1, 3, 5, 7, 9].map(|id| streams.find(id).is_some()),
            [true, false, true, false, true]
        );
        streams.close(keys[1], false);
        assert_eq!(streams.len(), 3);
    }

    #[test]
    fn the_latest_closed_streams_are_remembered() {
        let mut streams = Streams::new();
        for id in (1..).step_by(2).take(CLOSED + 1) {
            let key = open(&mut streams, id);
            streams.close(key, id % 4 == 1);
        }
        assert_eq!(streams.why_closed(1), Closed::Unknown);
        assert_eq!(streams.why_closed(3), Closed::ByPeer);
        assert_eq!(streams.why_closed(5), Closed::ByReset);
    }
}
