//! [`SendBuffers`]: the memory for data of responses that waits for a window or its turn.
//!
//! Owned by `connection`. Invariants: a stream has a buffer only while data waits; the data of all
//! streams is limited, and none is left without room by the others.

use crate::settings::Settings;
use crate::stream::Stream;
use std::collections::VecDeque;

/// Empty buffers for the next streams.
const SPARES: usize = 4;
/// Larger buffers are not used again.
const SPARE_BYTES: usize = 128 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct SendBuffers {
    stream_bytes_max: usize,
    bytes_max: usize,
    /// What waits on all streams.
    buffered_bytes: usize,
    spares: Vec<VecDeque<u8>>,
    /// The number of streams whose `is_waiting` is set.
    pub(super) waiting: usize,
}

impl SendBuffers {
    pub(super) fn new(stream_bytes_max: usize, bytes_max: usize) -> Self {
        let stream_bytes_max = stream_bytes_max.max(Settings::MIN_SEND_BUFFER_BYTES);
        Self { stream_bytes_max, bytes_max, buffered_bytes: 0, spares: Vec::new(), waiting: 0 }
    }

    /// What the stream may add.
    pub(super) fn room(&self, stream: &Stream) -> usize {
        let buffered = stream.buffer.len();
        let common = self.bytes_max.saturating_sub(self.buffered_bytes);
        let own = Settings::MIN_SEND_BUFFER_BYTES.saturating_sub(buffered);
        self.stream_bytes_max.saturating_sub(buffered).min(common.max(own))
    }

    /// Whether the room is worth waking the stream's task.
    pub(super) fn has_much_room(&self, stream: &Stream) -> bool {
        stream.buffer.is_empty() || self.room(stream) >= self.stream_bytes_max / 2
    }

    /// Adds data, at most [`Self::room`].
    pub(super) fn add(&mut self, stream: &mut Stream, data: &[u8]) {
        if stream.buffer.capacity() == 0
            && let Some(spare) = self.spares.pop()
        {
            stream.buffer = spare;
        }
        stream.buffer.extend(data);
        self.buffered_bytes += data.len();
    }

    /// Moves the first `bytes` of a stream to `out`.
    pub(super) fn take(&mut self, stream: &mut Stream, bytes: usize, out: &mut Vec<u8>) {
        let (first, second) = stream.buffer.as_slices();
        let from_first = bytes.min(first.len());
        out.extend_from_slice(&first[..from_first]);
        out.extend_from_slice(&second[..(bytes - from_first).min(second.len())]);
        let removed = stream.buffer.drain(..bytes.min(stream.buffer.len())).len();
        self.buffered_bytes -= removed;
        if stream.buffer.is_empty() {
            self.take_back(stream);
        }
    }

    /// Drops the data of a stream and takes back its memory.
    pub(super) fn take_back(&mut self, stream: &mut Stream) {
        self.buffered_bytes -= stream.buffer.len();
        let mut buffer = std::mem::take(&mut stream.buffer);
        let is_usable = buffer.capacity() > 0 && buffer.capacity() <= SPARE_BYTES;
        if is_usable && self.spares.len() < SPARES {
            buffer.clear();
            self.spares.push(buffer);
        }
    }

    /// Gives back unused memory.
    pub(super) fn shrink(&mut self) {
        self.spares = Vec::new();
    }

    /// What waits on all streams, and the memory for the next.
    pub(super) fn bytes(&self) -> usize {
        self.buffered_bytes + self.spares.iter().map(VecDeque::capacity).sum::<usize>()
    }
}
