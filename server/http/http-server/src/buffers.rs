//! [`Buffers`]: the memory that a connection needs while it processes a request.
//!
//! Taken from the pool at the first byte of a request and returned when the connection becomes idle,
//! so that idle connections hold none. Invariant: returned buffers are empty, and large ones are freed.

use outboard_buffer::Spares;
use outboard_http1::RequestHead;
use outboard_reactor::now_ms;

/// Initial capacity; a set that grew beyond four times this is freed.
const CAPACITY_BYTES: usize = 8 * 1024;
/// The same for a stream of HTTP/2: there are many, and most of them wait.
const STREAM_CAPACITY_BYTES: usize = 1024;

/// One connection's working memory.
#[derive(Debug)]
pub(crate) struct Buffers {
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
    fn with_capacity(bytes: usize) -> Self {
        Self {
            input: Vec::with_capacity(bytes),
            output: Vec::with_capacity(bytes),
            head: RequestHead::new(),
            path: Vec::new(),
        }
    }

    /// The largest capacity of its parts.
    fn capacity_bytes(&self) -> usize {
        let buffers = [&self.input, &self.output, &self.path];
        buffers.iter().map(|buffer| buffer.capacity()).max().unwrap_or(0)
    }

    fn clear(&mut self) {
        self.input.clear();
        self.output.clear();
        self.head.reset();
    }
}

/// Unused sets for streams. More would outlive their streams, and the trim of the heap after them.
const STREAM_SPARES: usize = 128;

/// Unused sets.
#[derive(Debug)]
pub(crate) struct BufferPool {
    of_connections: Spares<Buffers>,
    of_streams: Spares<Buffers>,
}

impl Default for BufferPool {
    fn default() -> Self {
        Self { of_connections: Spares::default(), of_streams: Spares::at_most(STREAM_SPARES) }
    }
}

impl BufferPool {
    /// A set for a connection.
    pub(crate) fn take(&self) -> Box<Buffers> {
        let spare = self.of_connections.take();
        spare.unwrap_or_else(|| Box::new(Buffers::with_capacity(CAPACITY_BYTES)))
    }

    /// A set for a stream.
    pub(crate) fn take_of_stream(&self) -> Box<Buffers> {
        let spare = self.of_streams.take();
        spare.unwrap_or_else(|| Box::new(Buffers::with_capacity(STREAM_CAPACITY_BYTES)))
    }

    /// Takes a set back, unless it has grown too much.
    pub(crate) fn give_back(&self, mut buffers: Box<Buffers>) {
        let is_of_stream = buffers.input.capacity() < CAPACITY_BYTES;
        let (spares, others, bytes) = match is_of_stream {
            true => (&self.of_streams, &self.of_connections, STREAM_CAPACITY_BYTES),
            false => (&self.of_connections, &self.of_streams, CAPACITY_BYTES),
        };
        // A server may have seen its last stream, or its last connection without.
        others.free_unused(now_ms());
        if buffers.capacity_bytes() <= 4 * bytes {
            buffers.clear();
            spares.give_back(buffers, now_ms());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_has_grown_is_freed() {
        outboard_reactor::run(async {
            let pool = BufferPool::default();
            for (mut grown, bytes) in
                [(pool.take(), CAPACITY_BYTES), (pool.take_of_stream(), STREAM_CAPACITY_BYTES)]
            {
                grown.output.reserve(5 * bytes);
                pool.give_back(grown);
            }
            assert!(pool.of_connections.take().is_none() && pool.of_streams.take().is_none());
        })
        .unwrap();
    }

    #[test]
    fn streams_have_small_sets_of_their_own() {
        outboard_reactor::run(async {
            let pool = BufferPool::default();
            pool.give_back(pool.take_of_stream());
            assert!(pool.of_connections.take().is_none());
            assert!(pool.take_of_stream().input.capacity() < CAPACITY_BYTES);
            assert!(pool.of_streams.take().is_none(), "it was used again");
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
            let buffers = pool.of_connections.take().expect("the set is stored");
            assert!(buffers.input.is_empty() && buffers.output.is_empty());
        })
        .unwrap();
    }
}
