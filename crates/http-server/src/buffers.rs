//! [`Buffers`]: the memory that a connection needs while it processes a request.
//!
//! Taken from the pool at the first byte of a request and returned when the connection becomes idle,
//! so that idle connections hold none. Invariants: returned buffers are empty, and large ones are freed;
//! buffers that were unused for a while are freed as well, so that memory follows the load.

use outboard_http1::RequestHead;
use outboard_reactor::now_ms;
use std::cell::RefCell;

/// Unused sets that are kept.
const MAX_SPARE: usize = 1024;
/// A set that was unused for so long is freed.
const UNUSED_MS: u64 = 1000;
/// Initial capacity; a set that grew beyond four times this is freed.
const CAPACITY_BYTES: usize = 8 * 1024;
/// Initial capacity for an HTTP/2 stream: there are many, and most of them wait.
const STREAM_CAPACITY_BYTES: usize = 1024;

/// One connection's working memory.
#[derive(Debug)]
pub struct Buffers {
    /// Bytes read and not consumed: a head, a part of a body, pipelined requests.
    pub input: Vec<u8>,
    /// A part of the response that is not written yet.
    pub output: Vec<u8>,
    /// The parsed head; its spans refer to `input`.
    pub head: RequestHead,
    /// The decoded, normalised path.
    pub path: Vec<u8>,
}

impl Buffers {
    fn new() -> Self {
        Self::with_capacity(CAPACITY_BYTES)
    }

    /// Buffers of an HTTP/2 stream, which ends with its request.
    pub(crate) fn of_stream() -> Box<Self> {
        Box::new(Self::with_capacity(STREAM_CAPACITY_BYTES))
    }

    fn with_capacity(bytes: usize) -> Self {
        Self {
            input: Vec::with_capacity(bytes),
            output: Vec::with_capacity(bytes),
            head: RequestHead::new(),
            path: Vec::new(),
        }
    }
}

/// Unused sets.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    spare: RefCell<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    #[allow(clippy::vec_box, reason = "an idle connection holds the pointer, not the set")]
    sets: Vec<Box<Buffers>>,
    /// The minimum number of sets since `since_ms`: that many were not needed.
    fewest: usize,
    since_ms: u64,
}

impl BufferPool {
    pub(crate) fn take(&self) -> Box<Buffers> {
        let mut spare = self.spare.borrow_mut();
        let set = spare.sets.pop();
        spare.fewest = spare.fewest.min(spare.sets.len());
        set.unwrap_or_else(|| Box::new(Buffers::new()))
    }

    pub(crate) fn give_back(&self, buffers: Box<Buffers>) {
        let mut spare = self.spare.borrow_mut();
        spare.keep(buffers);
        spare.free_unused(now_ms());
    }
}

impl Spare {
    fn keep(&mut self, mut buffers: Box<Buffers>) {
        let large = [&buffers.input, &buffers.output, &buffers.path]
            .iter()
            .any(|buffer| buffer.capacity() > 4 * CAPACITY_BYTES);
        let small = buffers.input.capacity() < CAPACITY_BYTES;
        if large || small || self.sets.len() >= MAX_SPARE {
            return;
        }
        buffers.input.clear();
        buffers.output.clear();
        buffers.head.reset();
        self.sets.push(buffers);
    }

    fn free_unused(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.since_ms) < UNUSED_MS {
            return;
        }
        self.sets.truncate(self.sets.len() - self.fewest);
        self.fewest = self.sets.len();
        self.since_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare(sets: usize) -> Spare {
        let sets = (0..sets).map(|_| Box::new(Buffers::new())).collect::<Vec<_>>();
        Spare { fewest: sets.len(), sets, since_ms: 0 }
    }

    #[test]
    fn unused_buffers_are_freed() {
        let mut spare = spare(10);
        spare.fewest = 4;
        spare.free_unused(UNUSED_MS - 1);
        assert_eq!(spare.sets.len(), 10);
        spare.free_unused(UNUSED_MS);
        assert_eq!(spare.sets.len(), 6, "four were spare all the time");
        spare.free_unused(2 * UNUSED_MS);
        assert_eq!(spare.sets.len(), 0, "and then none was needed");
    }

    #[test]
    fn a_large_set_is_freed() {
        let mut spare = Spare::default();
        let mut buffers = Box::new(Buffers::new());
        buffers.output.reserve(5 * CAPACITY_BYTES);
        spare.keep(buffers);
        assert_eq!(spare.sets.len(), 0);
        spare.keep(Box::new(Buffers::new()));
        assert_eq!(spare.sets.len(), 1);
    }
}
