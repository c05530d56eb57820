//! [`Buffers`]: the memory that a connection needs while it processes a request.
//!
//! Taken from the pool at the first byte of a request and returned when the connection becomes idle,
//! so that idle connections hold none. Invariant: returned buffers are empty, and large ones are freed.

use outboard_buffer::Spares;
use outboard_http1::RequestHead;
use outboard_reactor::now_ms;

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

    /// Whether it neither has grown too much nor is that of a stream.
    fn may_be_reused(&self) -> bool {
        let buffers = [&self.input, &self.output, &self.path];
        let is_large = buffers.iter().any(|buffer| buffer.capacity() > 4 * CAPACITY_BYTES);
        !is_large && self.input.capacity() >= CAPACITY_BYTES
    }

    fn clear(&mut self) {
        self.input.clear();
        self.output.clear();
        self.head.reset();
    }
}

/// Unused sets.
#[derive(Debug, Default)]
pub(crate) struct BufferPool(Spares<Buffers>);

impl BufferPool {
    pub(crate) fn take(&self) -> Box<Buffers> {
        self.0.take().unwrap_or_else(|| Box::new(Buffers::new()))
    }

    pub(crate) fn give_back(&self, mut buffers: Box<Buffers>) {
        if buffers.may_be_reused() {
            buffers.clear();
            self.0.give_back(buffers, now_ms());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_or_a_small_set_is_freed() {
        outboard_reactor::run(async {
            let pool = BufferPool::default();
            let mut large = Box::new(Buffers::new());
            large.output.reserve(5 * CAPACITY_BYTES);
            pool.give_back(large);
            pool.give_back(Buffers::of_stream());
            assert!(pool.0.take().is_none());
        })
        .unwrap();
    }

    #[test]
    fn a_set_that_is_used_again_is_empty() {
        outboard_reactor::run(async {
            let pool = BufferPool::default();
            let mut buffers = pool.take();
            buffers.input.extend_from_slice(b"GET / HTTP/1.1");
            buffers.output.extend_from_slice(b"HTTP/1.1 200 OK");
            pool.give_back(buffers);
            let buffers = pool.0.take().expect("the set is stored");
            assert!(buffers.input.is_empty() && buffers.output.is_empty());
        })
        .unwrap();
    }
}
