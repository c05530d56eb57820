//! [`Sender`]: what streams send, as frames in the order in which they are written.
//!
//! Owned by `connection`, which knows what follows from the end of a stream. Invariants: the head of a response is
//! encoded into the output at once, since the order of blocks is that of the encoder; data follows it directly if
//! nothing more urgent waits, and otherwise waits in the stream's buffer; DATA is framed only as far as the windows and
//! the caller's budget allow, so that what is decided about its order is little.

use crate::flow_control::{DEFAULT_WINDOW, FlowControlError, SendWindow};
use crate::frame::{FRAME_HEAD_BYTES, FrameHead, MIN_MAX_FRAME_BYTES, flag, kind, write_frame};
use crate::output::Output;
use crate::scheduler::Scheduler;
use crate::send_buffers::SendBuffers;
use crate::settings::Settings;
use crate::stream::{Sending, Stream, StreamKey};
use crate::streams::Streams;
use outboard_header_compression::hpack::{BlockWriter, Encoder};
use outboard_http_semantics::{Priority, is_connection_specific, is_token, is_valid_value};

/// Data bypasses the buffers while less is in the output.
const DIRECT_BYTES: usize = 32 << 10;
/// No peer refuses frames of this length.
const FRAME_BYTES: usize = MIN_MAX_FRAME_BYTES as usize;
/// A frame of less is not worth its head, unless it is all there is.
const WORTHWHILE_BYTES: usize = 1 << 10;

/// What a stream can send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendState {
    /// What [`Connection::send_data`](crate::Connection::send_data) accepts.
    pub accepted_bytes: usize,
    /// Data that waits for a window or its turn.
    pub buffered_bytes: usize,
    /// The window of the stream.
    pub stream_window_bytes: usize,
    /// The window of the connection.
    pub connection_window_bytes: usize,
}

/// What was written of data without a detour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentDirectly {
    pub(crate) bytes: usize,
    /// With the end of the stream.
    pub(crate) is_end: bool,
}

/// What the stream whose turn it is has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// No stream can send anything.
    Nothing,
    Sent,
    /// With the end of the stream.
    Ended(StreamKey),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sender {
    output: Output,
    encoder: Encoder,
    scheduler: Scheduler,
    window: SendWindow,
    buffers: SendBuffers,
    /// Streams that can send again.
    writable: Vec<StreamKey>,
}

impl Sender {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            output: Output::default(),
            encoder: Encoder::new(),
            scheduler: Scheduler::default(),
            window: SendWindow::new(DEFAULT_WINDOW),
            buffers: SendBuffers::new(
                settings.stream_send_buffer_bytes,
                settings.send_buffer_bytes,
            ),
            writable: Vec::new(),
        }
    }

    /// What was not written to the socket.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// For the frames that are not those of responses.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.output.buffer()
    }

    /// Removes what was written from the output.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.output.sent(bytes);
    }

    /// Whether there is something to write, or buffered data that can be framed.
    pub(crate) fn has_output(&self) -> bool {
        self.output.len() > 0 || (self.scheduler.next().is_some() && self.window.bytes() > 0)
    }

    /// Writes HEADERS, with CONTINUATION if the block is longer than a frame.
    pub(crate) fn write_head<'f>(
        &mut self,
        id: u32,
        status: Option<u16>,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        is_end: bool,
    ) {
        let buffer = self.output.buffer();
        let start = buffer.len();
        buffer.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
        let mut writer = self.encoder.begin(buffer);
        if let Some(status) = status {
            writer.status(status);
        }
        fields.into_iter().for_each(|(name, value)| write_field(&mut writer, name, value));
        let end_stream = if is_end { flag::END_STREAM } else { 0 };
        frame_block(buffer, start, id, end_stream);
    }

    /// The client has changed the size of its decoder's table.
    pub(crate) fn set_table_size(&mut self, bytes: usize) {
        self.encoder.set_table_size(bytes);
    }

    /// What a stream can send.
    pub(crate) fn state_of(&self, stream: &Stream) -> SendState {
        let accepted_bytes = match stream.sending {
            Sending::Ended => 0,
            _ => self.direct_room(stream) + self.buffers.room(stream),
        };
        SendState {
            accepted_bytes,
            buffered_bytes: stream.buffer.len(),
            stream_window_bytes: stream.send_window.bytes(),
            connection_window_bytes: self.window.bytes(),
        }
    }

    /// What the stream may write to the output now.
    fn direct_room(&self, stream: &Stream) -> usize {
        if !stream.buffer.is_empty() || self.scheduler.has_before(stream.priority.urgency) {
            return 0;
        }
        let room = DIRECT_BYTES.saturating_sub(self.output.len());
        room.min(stream.send_window.bytes()).min(self.window.bytes())
    }

    /// Writes as much data as possible to the output, and the end if that is all. `None` if that is nothing.
    pub(crate) fn send_directly(
        &mut self,
        stream: &mut Stream,
        data: &[u8],
        is_end: bool,
    ) -> Option<SentDirectly> {
        let bytes = self.direct_room(stream).min(data.len());
        // An end without data needs no window.
        let is_end = is_end && bytes == data.len() && stream.buffer.is_empty();
        if bytes == 0 && !is_end {
            return None;
        }
        stream.send_window.take(bytes);
        self.window.take(bytes);
        let mut left = &data[..bytes];
        loop {
            let (piece, rest) = left.split_at(left.len().min(FRAME_BYTES));
            left = rest;
            let is_last = rest.is_empty();
            let flags = if is_end && is_last { flag::END_STREAM } else { 0 };
            write_frame(self.output.buffer(), kind::DATA, flags, stream.id, piece);
            if is_last {
                return Some(SentDirectly { bytes, is_end });
            }
        }
    }

    /// Buffers as much data as possible, and the end if that is all.
    pub(crate) fn buffer_data(
        &mut self,
        key: StreamKey,
        stream: &mut Stream,
        data: &[u8],
        is_end: bool,
    ) -> usize {
        let bytes = self.buffers.room(stream).min(data.len());
        self.buffers.add(stream, &data[..bytes]);
        if bytes < data.len() {
            self.buffers.wait(stream);
        } else if is_end {
            stream.sending = Sending::Ended;
        }
        self.scheduler.add(key, stream);
        bytes
    }

    /// Sends a frame of the stream whose turn it is, as far as the output stays below the budget.
    pub(crate) fn send_turn(&mut self, streams: &mut Streams, budget_bytes: usize) -> Turn {
        // With less, nothing might be sent although there is something.
        let budget_bytes = budget_bytes.max(WORTHWHILE_BYTES + FRAME_HEAD_BYTES);
        let room = budget_bytes.saturating_sub(self.output.len() + FRAME_HEAD_BYTES);
        let Some(key) = self.scheduler.next() else { return Turn::Nothing };
        let Some(stream) = streams.get_mut(key) else { return Turn::Nothing };
        let windows = stream.send_window.bytes().min(self.window.bytes());
        let wanted = stream.buffer.len().min(windows).min(FRAME_BYTES);
        let bytes = wanted.min(room);
        if bytes == 0 || (bytes < wanted && bytes < WORTHWHILE_BYTES) {
            return Turn::Nothing;
        }
        let is_last = stream.sending == Sending::Ended && bytes == stream.buffer.len();
        let trailers = if is_last { stream.trailers.take() } else { None };
        let is_end = is_last && trailers.is_none();
        let flags = if is_end { flag::END_STREAM } else { 0 };
        let head = FrameHead { len: bytes, kind: kind::DATA, flags, stream_id: key.id };
        self.output.buffer().extend_from_slice(&head.bytes());
        self.buffers.take(stream, bytes, self.output.buffer());
        stream.send_window.take(bytes);
        self.window.take(bytes);
        stream.stalled_since_ms = None;
        self.scheduler.sent(key, stream, bytes);
        if let Some(trailers) = trailers {
            self.write_head(key.id, None, trailers.iter(), true);
        }
        if is_last { Turn::Ended(key) } else { Turn::Sent }
    }

    /// The stream's task waits until more is accepted.
    pub(crate) fn wait(&mut self, stream: &mut Stream) {
        self.buffers.wait(stream);
    }

    /// Finds the waiting streams that can send more.
    pub(crate) fn find_writable(&mut self, streams: &mut Streams) {
        if !self.buffers.has_waiting() {
            return;
        }
        for at in 0..streams.len() {
            let Some(key) = streams.at(at) else { break };
            let Some(stream) = streams.get_mut(key) else { continue };
            if stream.is_waiting && self.buffers.has_much_room(stream) {
                self.buffers.stop_waiting(stream);
                self.writable.push(key);
            }
        }
    }

    /// A stream that can send more, unless it is closed.
    pub(crate) fn next_writable(&mut self) -> Option<StreamKey> {
        self.writable.pop()
    }

    /// The client allows more to be sent on all streams.
    pub(crate) fn add_window(&mut self, increment: u32) -> Result<(), FlowControlError> {
        self.window.add(increment)
    }

    /// The client allows more to be sent on a stream.
    pub(crate) fn add_stream_window(
        &mut self,
        key: StreamKey,
        stream: &mut Stream,
        increment: u32,
    ) -> Result<(), FlowControlError> {
        stream.send_window.add(increment)?;
        self.scheduler.add(key, stream);
        Ok(())
    }

    /// RFC 9113 6.9.2: the client has changed the first window of all streams.
    pub(crate) fn change_stream_windows(
        &mut self,
        streams: &mut Streams,
        difference: i64,
    ) -> Result<(), FlowControlError> {
        for at in 0..streams.len() {
            let Some(key) = streams.at(at) else { break };
            let Some(stream) = streams.get_mut(key) else { continue };
            stream.send_window.change(difference)?;
            match stream.is_ready() {
                true => self.scheduler.add(key, stream),
                false => self.scheduler.remove(key, stream),
            }
        }
        Ok(())
    }

    pub(crate) fn set_priority(&mut self, key: StreamKey, stream: &mut Stream, priority: Priority) {
        self.scheduler.set_priority(key, stream, priority);
    }

    /// Drops what a stream has not sent.
    pub(crate) fn forget(&mut self, key: StreamKey, stream: &mut Stream) {
        self.scheduler.remove(key, stream);
        self.buffers.take_back(stream);
        stream.trailers = None;
        self.buffers.stop_waiting(stream);
    }

    /// Gives back memory; no stream is open.
    pub(crate) fn shrink(&mut self) {
        self.scheduler.clear();
        self.writable = Vec::new();
        self.buffers.shrink();
        self.output.shrink();
    }

    /// Without the table of the encoder.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.output.capacity_bytes() + self.buffers.bytes()
    }
}

/// Leaves out what may not be sent (RFC 9113 8.2).
fn write_field(writer: &mut BlockWriter<'_>, name: &[u8], value: &[u8]) {
    if is_token(name) && is_valid_value(value) && !is_connection_specific(name) {
        writer.field(name, value);
    }
}

/// Writes the heads of the frames of a block that begins after room for the first.
fn frame_block(buffer: &mut Vec<u8>, start: usize, stream_id: u32, end_stream: u8) {
    let block_bytes = buffer.len() - start - FRAME_HEAD_BYTES;
    let head = |len, kind, flags| FrameHead { len, kind, flags, stream_id }.bytes();
    if block_bytes <= FRAME_BYTES {
        let flags = end_stream | flag::END_HEADERS;
        let bytes = head(block_bytes, kind::HEADERS, flags);
        buffer[start..start + FRAME_HEAD_BYTES].copy_from_slice(&bytes);
        return;
    }
    let block = buffer.split_off(start + FRAME_HEAD_BYTES);
    buffer.truncate(start);
    let last = block.len().div_ceil(FRAME_BYTES) - 1;
    for (at, piece) in block.chunks(FRAME_BYTES).enumerate() {
        let (kind, first) =
            if at == 0 { (kind::HEADERS, end_stream) } else { (kind::CONTINUATION, 0) };
        let flags = first | if at == last { flag::END_HEADERS } else { 0 };
        buffer.extend_from_slice(&head(piece.len(), kind, flags));
        buffer.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests;
