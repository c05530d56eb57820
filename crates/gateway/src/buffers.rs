//! The memory that a connection needs only while it works on a request.
//!
//! Borrowed from the gateway when the first byte of a request comes and given back when the
//! connection goes idle, so that ten thousand idle connections hold none of it. Invariants: what
//! goes back is empty and of moderate size, and what grew large is freed; sets that nobody needed
//! for a while are freed too, so spare memory follows the load down.

use outboard_http1::RequestHead;
use outboard_reactor::now_ms;
use std::cell::RefCell;

/// Spare sets that are kept at most.
const KEPT: usize = 1024;
/// A set that was spare for so long is freed.
const UNUSED_MS: u64 = 1000;
/// Capacity with which a set is made, and beyond four times of which it is not kept.
const CAPACITY_BYTES: usize = 8 * 1024;
/// The same for a stream of HTTP/2, of which a client has many at a time, most of them waiting.
const STREAM_CAPACITY_BYTES: usize = 1024;

/// One connection's working memory.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// What was read and not yet consumed: a head, the beginning of a body, pipelined requests.
    pub(crate) input: Vec<u8>,
    /// The answer that is being put together.
    pub(crate) output: Vec<u8>,
    /// The parsed head; its spans lead into `input`.
    pub(crate) head: RequestHead,
    /// The decoded, normalised path.
    pub(crate) path: Vec<u8>,
}

impl Buffers {
    fn new() -> Self {
        Self::with_capacity(CAPACITY_BYTES)
    }

    /// Those of a stream of HTTP/2, which is over with its request.
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

/// The spare sets.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    spare: RefCell<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    #[allow(clippy::vec_box, reason = "an idle connection holds the pointer, not the set")]
    sets: Vec<Box<Buffers>>,
    /// The fewest that there were since `since_ms`: so many were needed by nobody.
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
        if large || small || self.sets.len() >= KEPT {
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
    fn what_nobody_needed_for_a_while_is_freed() {
        let mut spare = spare(10);
        spare.fewest = 4;
        spare.free_unused(UNUSED_MS - 1);
        assert_eq!(spare.sets.len(), 10);
        spare.free_unused(UNUSED_MS);
        assert_eq!(spare.sets.len(), 6, "four were spare all the time");
        spare.free_unused(2 * UNUSED_MS);
        assert_eq!(spare.sets.len(), 0, "and then nobody needed any");
    }

    #[test]
    fn a_set_that_grew_large_is_not_kept() {
        let mut spare = Spare::default();
        let mut buffers = Box::new(Buffers::new());
        buffers.output.reserve(5 * CAPACITY_BYTES);
        spare.keep(buffers);
        assert_eq!(spare.sets.len(), 0);
        spare.keep(Box::new(Buffers::new()));
        assert_eq!(spare.sets.len(), 1);
    }
}
