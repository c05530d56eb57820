//! The memory that a connection needs only while it works on a request.
//!
//! Borrowed from the gateway when the first byte of a request comes and given back when the
//! connection goes idle, so that ten thousand idle connections hold none of it. Invariant: what
//! goes back is empty and of moderate size; what grew large is freed.

use outboard_http1::RequestHead;
use std::cell::RefCell;

/// Spare sets that are kept at most.
const KEPT: usize = 64;
/// Capacity with which a set is made, and beyond four times of which it is not kept.
const CAPACITY_BYTES: usize = 8 * 1024;

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
        Self {
            input: Vec::with_capacity(CAPACITY_BYTES),
            output: Vec::with_capacity(CAPACITY_BYTES),
            head: RequestHead::new(),
            path: Vec::new(),
        }
    }
}

/// The spare sets.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    #[allow(clippy::vec_box, reason = "an idle connection holds the pointer, not the set")]
    spare: RefCell<Vec<Box<Buffers>>>,
}

impl BufferPool {
    pub(crate) fn take(&self) -> Box<Buffers> {
        self.spare.borrow_mut().pop().unwrap_or_else(|| Box::new(Buffers::new()))
    }

    pub(crate) fn give_back(&self, mut buffers: Box<Buffers>) {
        let mut spare = self.spare.borrow_mut();
        let large = [&buffers.input, &buffers.output, &buffers.path]
            .iter()
            .any(|buffer| buffer.capacity() > 4 * CAPACITY_BYTES);
        if large || spare.len() >= KEPT {
            return;
        }
        buffers.input.clear();
        buffers.output.clear();
        buffers.head.reset();
        spare.push(buffers);
    }
}
