//! Responses: heads, data and trailers (RFC 9113 8.1, 8.3.2).
//!
//! Called by the task of each stream. Invariants: the head of a response is encoded into the output at
//! once, since the order of blocks is that of the encoder; data follows it directly if nothing more
//! urgent waits, and otherwise waits in the stream's buffer.

use super::Connection;
use crate::error::{ErrorCode, SendError};
use crate::frame::{FRAME_HEAD_BYTES, FrameHead, MIN_MAX_FRAME_BYTES, flag, kind};
use crate::frame::{write_frame, write_window_update};
use crate::stream::{Sending, StreamKey};
use outboard_header_compression::hpack::BlockWriter;
use outboard_http_semantics::{Fields, Priority, is_connection_specific, is_token, is_valid_value};

/// Data bypasses the buffers while less is in the output.
const DIRECT_BYTES: usize = 32 << 10;
/// No peer refuses frames of this length.
pub(super) const FRAME_BYTES: usize = MIN_MAX_FRAME_BYTES as usize;

/// What a stream can send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendState {
    /// What [`Connection::send_data`] accepts.
    pub accepted_bytes: usize,
    /// Data that waits for a window or its turn.
    pub buffered_bytes: usize,
    /// The window of the stream.
    pub stream_window_bytes: usize,
    /// The window of the connection.
    pub connection_window_bytes: usize,
}

impl Connection {
    /// Sends the head of a response, which is complete if `is_end`.
    ///
    /// Names may have any case. Fields of a connection of HTTP/1.1 and invalid ones are left out.
    ///
    /// # Errors
    /// The stream is closed, or has a head already.
    pub fn send_head<'f>(
        &mut self,
        stream: StreamKey,
        status: u16,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        is_end: bool,
    ) -> Result<(), SendError> {
        let state = self.stream_mut(stream).ok_or(SendError::StreamClosed)?;
        if state.sending != Sending::Head {
            return Err(SendError::WrongOrder);
        }
        state.sending = Sending::Body;
        let mut priority = None;
        let fields = fields.into_iter().inspect(|(name, value)| {
            if name.len() == 8 && name.eq_ignore_ascii_case(b"priority") {
                priority = Some(*value);
            }
        });
        self.write_head(stream, Some(status), fields, is_end);
        if is_end {
            self.finish_sending(stream);
        } else if let Some(value) = priority {
            self.merge_priority(stream, value);
        }
        Ok(())
    }

    /// Sends an interim response, with a status of 1xx (RFC 9110 15.2).
    ///
    /// # Errors
    /// The stream is closed, or has a head already.
    pub fn send_interim<'f>(
        &mut self,
        stream: StreamKey,
        status: u16,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), SendError> {
        let state = self.stream_mut(stream).ok_or(SendError::StreamClosed)?;
        if state.sending != Sending::Head {
            return Err(SendError::WrongOrder);
        }
        self.write_head(stream, Some(status), fields, false);
        Ok(())
    }

    /// Sends a part of the body, the last one if `is_end`; returns how many bytes were accepted.
    ///
    /// The end counts only if all bytes were accepted. Otherwise [`Self::next_writable`] returns the
    /// stream once more is accepted.
    ///
    /// # Errors
    /// The stream is closed, or the head is missing, or the end was sent.
    pub fn send_data(
        &mut self,
        stream: StreamKey,
        data: &[u8],
        is_end: bool,
    ) -> Result<usize, SendError> {
        let state = self.streams.get(stream).ok_or(SendError::StreamClosed)?;
        if state.sending != Sending::Body {
            return Err(SendError::WrongOrder);
        }
        let direct_bytes = self.send_direct(stream, data, is_end);
        let rest = &data[direct_bytes..];
        if rest.is_empty() && (!is_end || !self.is_open(stream)) {
            return Ok(direct_bytes);
        }
        Ok(direct_bytes + self.buffer_data(stream, rest, is_end))
    }

    /// Sends the end of a body.
    ///
    /// # Errors
    /// As [`Self::send_data`].
    pub fn send_end(&mut self, stream: StreamKey) -> Result<(), SendError> {
        self.send_data(stream, &[], true).map(|_| ())
    }

    /// Sends trailers, which end the response (RFC 9113 8.1).
    ///
    /// # Errors
    /// As [`Self::send_data`].
    pub fn send_trailers<'f>(
        &mut self,
        stream: StreamKey,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), SendError> {
        let state = self.streams.get_mut(stream).ok_or(SendError::StreamClosed)?;
        if state.sending != Sending::Body {
            return Err(SendError::WrongOrder);
        }
        if state.buffer.is_empty() {
            self.write_head(stream, None, fields, true);
            self.finish_sending(stream);
            return Ok(());
        }
        // Blocks are encoded in the order in which they are sent.
        let mut trailers = Box::<Fields>::default();
        fields.into_iter().for_each(|(name, value)| trailers.push(name, value));
        state.trailers = Some(trailers);
        state.sending = Sending::Ended;
        Ok(())
    }

    /// Closes a stream with RST_STREAM.
    pub fn reset(&mut self, stream: StreamKey, code: ErrorCode) {
        if self.is_open(stream) {
            self.reset_stream(stream, code);
        }
    }

    /// Allows the client to send as much again as the server has processed.
    pub fn release(&mut self, stream: StreamKey, bytes: usize) {
        // What a closed stream has received was released.
        let Some(state) = self.streams.get_mut(stream) else { return };
        let bytes = bytes.min(state.receive_window.unreleased() as usize) as u32;
        let increment = state.receive_window.release(bytes);
        if let Some(increment) = increment
            && !state.has_received_all
        {
            write_window_update(self.output.buffer(), stream.id, increment);
        }
        self.release_of_connection(bytes);
    }

    /// How much [`Self::send_data`] accepts; 0 if the stream is closed.
    pub fn accepts_bytes(&self, stream: StreamKey) -> usize {
        self.send_state(stream).map_or(0, |state| state.accepted_bytes)
    }

    /// What a stream can send; `None` if it is closed.
    pub fn send_state(&self, stream: StreamKey) -> Option<SendState> {
        let state = self.streams.get(stream)?;
        let accepted_bytes = match state.sending {
            Sending::Ended => 0,
            _ => self.direct_room(stream) + self.send_buffers.room(state),
        };
        Some(SendState {
            accepted_bytes,
            buffered_bytes: state.buffer.len(),
            stream_window_bytes: state.send_window.bytes(),
            connection_window_bytes: self.send_window.bytes(),
        })
    }

    /// What the stream may write to the output now.
    fn direct_room(&self, stream: StreamKey) -> usize {
        let room = DIRECT_BYTES.saturating_sub(self.output.len());
        let Some(state) = self.streams.get(stream) else { return 0 };
        if !state.buffer.is_empty() || self.scheduler.has_before(state.priority.urgency) {
            return 0;
        }
        room.min(state.send_window.bytes()).min(self.send_window.bytes())
    }

    /// Writes as much data as possible to the output, and the end if that is all.
    fn send_direct(&mut self, stream: StreamKey, data: &[u8], is_end: bool) -> usize {
        let bytes = self.direct_room(stream).min(data.len());
        let Some(state) = self.streams.get_mut(stream) else { return 0 };
        // An end without data needs no window.
        let is_end = is_end && bytes == data.len() && state.buffer.is_empty();
        if bytes == 0 && !is_end {
            return 0;
        }
        state.send_window.take(bytes);
        self.send_window.take(bytes);
        let mut left = &data[..bytes];
        loop {
            let (piece, rest) = left.split_at(left.len().min(FRAME_BYTES));
            left = rest;
            let is_last = rest.is_empty();
            let flags = if is_end && is_last { flag::END_STREAM } else { 0 };
            write_frame(self.output.buffer(), kind::DATA, flags, stream.id, piece);
            if is_last {
                break;
            }
        }
        self.note_sent_data();
        if is_end {
            self.finish_sending(stream);
        }
        bytes
    }

    /// Buffers as much data as possible, and the end if that is all.
    fn buffer_data(&mut self, stream: StreamKey, data: &[u8], is_end: bool) -> usize {
        let Some(state) = self.streams.get_mut(stream) else { return 0 };
        let bytes = self.send_buffers.room(state).min(data.len());
        self.send_buffers.add(state, &data[..bytes]);
        if bytes == data.len() {
            if is_end {
                state.sending = Sending::Ended;
            }
        } else if !std::mem::replace(&mut state.is_waiting, true) {
            self.send_buffers.waiting += 1;
        }
        self.scheduler.add(stream, state);
        bytes
    }

    fn merge_priority(&mut self, stream: StreamKey, value: &[u8]) {
        if let Some(state) = self.streams.get_mut(stream) {
            let priority: Priority = state.priority.merged(value);
            self.scheduler.set_priority(stream, state, priority);
        }
    }

    /// Writes HEADERS, with CONTINUATION if the block is longer than a frame.
    pub(super) fn write_head<'f>(
        &mut self,
        stream: StreamKey,
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
        frame_block(buffer, start, stream.id, end_stream);
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
