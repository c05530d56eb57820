//! [`SendBuffers`]: the memory for data of responses that waits for a window or its turn.
//!
//! Owned by `sender`. Invariants: a stream has a buffer only while data waits; the data of all
//! streams is limited, and none is left without room by the others; the streams whose tasks wait for room are
//! counted.

use crate::settings::Settings;
use crate::stream::Stream;
use std::collections::VecDeque;

/// Empty buffers for the next streams.
const SPARES: usize = 4;
/// Larger buffers are not used again.
const SPARE_BYTES: usize = 128 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct SendBuffers {
    stream_bytes_max: usize,
    bytes_max: usize,
    /// What waits on all streams.
    buffered_bytes: usize,
    spares: Vec<VecDeque<u8>>,
    /// The number of streams whose `is_waiting` is set.
    waiting: usize,
}

impl SendBuffers {
    pub(crate) fn new(stream_bytes_max: usize, bytes_max: usize) -> Self {
        let stream_bytes_max = stream_bytes_max.max(Settings::MIN_SEND_BUFFER_BYTES);
        Self { stream_bytes_max, bytes_max, buffered_bytes: 0, spares: Vec::new(), waiting: 0 }
    }

    /// What the stream may add.
    pub(crate) fn room(&self, stream: &Stream) -> usize {
        let buffered = stream.buffer.len();
        let common = self.bytes_max.saturating_sub(self.buffered_bytes);
        let own = Settings::MIN_SEND_BUFFER_BYTES.saturating_sub(buffered);
        self.stream_bytes_max.saturating_sub(buffered).min(common.max(own))
    }

    /// Whether the room is worth waking the stream's task.
    pub(crate) fn has_much_room(&self, stream: &Stream) -> bool {
        stream.buffer.is_empty() || self.room(stream) >= self.stream_bytes_max / 2
    }

    /// Whether the task of a stream waits for room.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The task of a stream waits for room.
    pub(crate) fn wait(&mut self, stream: &mut Stream) {
        if !std::mem::replace(&mut stream.is_waiting, true) {
            self.waiting += 1;
        }
    }

    /// The task of a stream does not wait any more.
    pub(crate) fn stop_waiting(&mut self, stream: &mut Stream) {
        if std::mem::take(&mut stream.is_waiting) {
            self.waiting -= 1;
        }
    }

    /// Adds data, at most [`Self::room`].
    pub(crate) fn add(&mut self, stream: &mut Stream, data: &[u8]) {
        if stream.buffer.capacity() == 0
            && let Some(spare) = self.spares.pop()
        {
            stream.buffer = spare;
        }
        stream.buffer.extend(data);
        self.buffered_bytes += data.len();
    }

    /// Moves the first `bytes` of a stream to `out`.
    pub(crate) fn take(&mut self, stream: &mut Stream, bytes: usize, out: &mut Vec<u8>) {
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
    pub(crate) fn take_back(&mut self, stream: &mut Stream) {
        self.buffered_bytes -= stream.buffer.len();
        let mut buffer = std::mem::take(&mut stream.buffer);
        let is_usable = buffer.capacity() > 0 && buffer.capacity() <= SPARE_BYTES;
        if is_usable && self.spares.len() < SPARES {
            buffer.clear();
            self.spares.push(buffer);
        }
    }

    /// Gives back unused memory.
    pub(crate) fn shrink(&mut self) {
        self.spares = Vec::new();
    }

    /// What waits on all streams, and the memory for the next.
    pub(crate) fn bytes(&self) -> usize {
        self.buffered_bytes + self.spares.iter().map(VecDeque::capacity).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(id: u32) -> Stream {
        Stream::new(id, 1 << 20, 1 << 20)
    }

    #[test]
    fn no_stream_is_left_without_room_by_the_others() {
        let mut buffers = SendBuffers::new(64 << 10, 100 << 10);
        let (mut first, mut second, mut third) = (stream(1), stream(3), stream(5));
        buffers.add(&mut first, &[0; 64 << 10]);
        assert_eq!(buffers.room(&first), 0);
        buffers.add(&mut second, &[0; 36 << 10]);
        assert_eq!(buffers.room(&third), Settings::MIN_SEND_BUFFER_BYTES);
        buffers.add(&mut third, &[0; Settings::MIN_SEND_BUFFER_BYTES]);
        assert_eq!(buffers.room(&third), 0);
        buffers.take_back(&mut first);
        assert_eq!(buffers.room(&third), 60 << 10);
    }

    #[test]
    fn data_is_taken_in_order_and_the_memory_is_used_again() {
        let mut buffers = SendBuffers::new(64 << 10, 64 << 10);
        let (mut one, mut out) = (stream(1), Vec::new());
        for part in [&b"abc"[..], b"defg", b"h"] {
            buffers.add(&mut one, part);
            buffers.take(&mut one, 2, &mut out);
        }
        buffers.take(&mut one, 2, &mut out);
        assert_eq!(out, b"abcdefgh");
        assert_eq!(one.buffer.capacity(), 0);
        let spare_bytes = buffers.bytes();
        assert!(spare_bytes > 0);
        let mut other = stream(3);
        buffers.add(&mut other, b"x");
        assert_eq!(buffers.bytes(), 1, "the spare buffer is that of the stream");
        buffers.take_back(&mut other);
        assert_eq!(buffers.bytes(), spare_bytes);
        buffers.shrink();
        assert_eq!(buffers.bytes(), 0);
    }

    #[test]
    fn a_stream_waits_once() {
        let mut buffers = SendBuffers::new(0, 0);
        let mut stream = stream(1);
        buffers.wait(&mut stream);
        buffers.wait(&mut stream);
        assert!(buffers.has_waiting());
        buffers.stop_waiting(&mut stream);
        buffers.stop_waiting(&mut stream);
        assert!(!buffers.has_waiting());
    }
}
