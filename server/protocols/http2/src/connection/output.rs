//! Output: what is written next, and what follows from it.
//!
//! Called by the task that writes the session. Invariant: DATA is framed only as far as the windows and
//! the caller's budget allow, so that what is decided about its order is little.

use super::send::FRAME_BYTES;
use super::{Connection, Phase};
use crate::error::ErrorCode;
use crate::frame::{FRAME_HEAD_BYTES, FrameHead, flag, kind};
use crate::meter::Metered;
use crate::stream::{Sending, StreamKey};

/// A connection with more output has a client that does not read.
const CONGESTED_BYTES: usize = 128 << 10;
/// A frame of less is not worth its head, unless it is all there is.
const WORTHWHILE_BYTES: usize = 1 << 10;

impl Connection {
    /// The frames to be written, with DATA up to `budget_bytes` of them; the caller reports with
    /// [`Self::sent`] how much it has written.
    pub fn output(&mut self, budget_bytes: usize) -> &[u8] {
        self.fill(budget_bytes);
        self.output.bytes()
    }

    /// Removes what was written from the output.
    pub fn sent(&mut self, bytes: usize) {
        self.output.sent(bytes);
    }

    /// The bytes of frames that were not written.
    pub fn unsent_bytes(&self) -> usize {
        self.output.len()
    }

    /// Whether [`Self::output`] has something to write.
    pub fn has_output(&self) -> bool {
        self.output.len() > 0 || (self.scheduler.next().is_some() && self.send_window.bytes() > 0)
    }

    /// Whether the client reads so little that the caller should not read from it, because what it
    /// sends may need responses.
    pub fn is_congested(&self) -> bool {
        self.output.len() > CONGESTED_BYTES
    }

    /// A stream whose last [`Self::send_data`] did not accept all, and that can send more now.
    ///
    /// The caller calls it after [`Self::output`] until it returns `None`.
    pub fn next_writable(&mut self) -> Option<StreamKey> {
        loop {
            let key = self.writable.pop()?;
            if self.is_open(key) {
                return Some(key);
            }
        }
    }

    /// Resets the streams whose data waits and was not sent for `timeout_ms`, as seen by these calls.
    pub fn reset_stalled(
        &mut self,
        now_ms: u64,
        timeout_ms: u64,
        mut on_reset: impl FnMut(StreamKey),
    ) {
        // Descending, because a reset removes a stream from the list.
        for at in (0..self.streams.len()).rev() {
            let Some(key) = self.streams.at(at) else { continue };
            let Some(stream) = self.streams.get_mut(key) else { continue };
            if stream.buffer.is_empty() {
                continue;
            }
            let since_ms = *stream.stalled_since_ms.get_or_insert(now_ms);
            if now_ms.saturating_sub(since_ms) >= timeout_ms {
                self.reset_stream(key, ErrorCode::CANCEL);
                on_reset(key);
            }
        }
    }

    /// Frames buffered data in the order of the scheduler.
    fn fill(&mut self, budget_bytes: usize) {
        if matches!(self.phase, Phase::Failed(_)) {
            return;
        }
        // With less, nothing might be sent although there is something.
        let budget_bytes = budget_bytes.max(WORTHWHILE_BYTES + FRAME_HEAD_BYTES);
        let mut has_sent = false;
        // Each turn sends data, or ends the loop.
        while let Some(key) = self.scheduler.next() {
            let room = budget_bytes.saturating_sub(self.output.len() + FRAME_HEAD_BYTES);
            if !self.send_turn(key, room) {
                break;
            }
            has_sent = true;
        }
        if self.send_buffers.waiting > 0 {
            self.find_writable();
        }
        if has_sent {
            self.note_sent_data();
        }
    }

    /// Sends a frame of the stream whose turn it is; `false` if nothing can be sent.
    fn send_turn(&mut self, key: StreamKey, room: usize) -> bool {
        let Some(stream) = self.streams.get_mut(key) else { return false };
        let windows = stream.send_window.bytes().min(self.send_window.bytes());
        let wanted = stream.buffer.len().min(windows).min(FRAME_BYTES);
        let bytes = wanted.min(room);
        if bytes == 0 || (bytes < wanted && bytes < WORTHWHILE_BYTES) {
            return false;
        }
        let is_last = stream.sending == Sending::Ended && bytes == stream.buffer.len();
        let trailers = if is_last { stream.trailers.take() } else { None };
        let is_end = is_last && trailers.is_none();
        let flags = if is_end { flag::END_STREAM } else { 0 };
        let head = FrameHead { len: bytes, kind: kind::DATA, flags, stream_id: key.id };
        self.output.buffer().extend_from_slice(&head.bytes());
        self.send_buffers.take(stream, bytes, self.output.buffer());
        stream.send_window.take(bytes);
        self.send_window.take(bytes);
        stream.stalled_since_ms = None;
        self.scheduler.sent(key, stream, bytes);
        if let Some(trailers) = trailers {
            self.write_head(key, None, trailers.iter(), true);
        }
        if is_last {
            self.finish_sending(key);
        }
        true
    }

    /// Finds the waiting streams that can send more.
    fn find_writable(&mut self) {
        for at in 0..self.streams.len() {
            let Some(key) = self.streams.at(at) else { break };
            let Some(stream) = self.streams.get_mut(key) else { continue };
            if stream.is_waiting && self.send_buffers.has_much_room(stream) {
                stream.is_waiting = false;
                self.send_buffers.waiting -= 1;
                self.writable.push(key);
            }
        }
    }

    /// The client may send WINDOW_UPDATEs for it.
    pub(super) fn note_sent_data(&mut self) {
        self.meters.relieve(Metered::WindowUpdate, 4);
    }
}
