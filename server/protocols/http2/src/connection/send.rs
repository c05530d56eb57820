//! Responses: heads, data and trailers (RFC 9113 8.1, 8.3.2), and the output.
//!
//! Called by the task of each stream, and for the output by the task that writes the session. Invariant: a stream that
//! is reported to have no room is returned by [`Connection::next_writable`] once it has.

use super::Connection;
use crate::error::{ErrorCode, SendError};
use crate::sender::{SendState, Turn};
use crate::stream::{Sending, StreamKey};
use outboard_http_semantics::Fields;

/// A connection with more output has a client that does not read.
const CONGESTED_BYTES: usize = 128 << 10;

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
        let state = self.streams.get_mut(stream).ok_or(SendError::StreamClosed)?;
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
        self.sender.write_head(stream.id, Some(status), fields, is_end);
        if is_end {
            self.finish_sending(stream);
        } else if let Some(value) = priority {
            let merged = state.priority.merged(value);
            self.sender.set_priority(stream, state, merged);
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
        let state = self.streams.get_mut(stream).ok_or(SendError::StreamClosed)?;
        if state.sending != Sending::Head {
            return Err(SendError::WrongOrder);
        }
        self.sender.write_head(stream.id, Some(status), fields, false);
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
        let state = self.streams.get_mut(stream).ok_or(SendError::StreamClosed)?;
        if state.sending != Sending::Body {
            return Err(SendError::WrongOrder);
        }
        let mut accepted = 0;
        if let Some(sent) = self.sender.send_directly(state, data, is_end) {
            self.meters.relieve_by_data();
            if sent.is_end {
                self.finish_sending(stream);
                return Ok(sent.bytes);
            }
            accepted = sent.bytes;
        }
        let rest = &data[accepted..];
        if rest.is_empty() && !is_end {
            return Ok(accepted);
        }
        Ok(accepted + self.sender.buffer_data(stream, state, rest, is_end))
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
            self.sender.write_head(stream.id, None, fields, true);
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

    /// How much [`Self::send_data`] accepts; 0 if the stream is closed.
    pub fn accepts_bytes(&self, stream: StreamKey) -> usize {
        self.send_state(stream).map_or(0, |state| state.accepted_bytes)
    }

    /// What a stream can send; `None` if it is closed.
    pub fn send_state(&self, stream: StreamKey) -> Option<SendState> {
        self.streams.get(stream).map(|stream| self.sender.state_of(stream))
    }

    /// Whether [`Self::send_data`] accepts anything now. If not, the stream waits for it.
    pub fn is_writable(&mut self, stream: StreamKey) -> bool {
        if self.accepts_bytes(stream) > 0 {
            return true;
        }
        if let Some(state) = self.streams.get_mut(stream)
            && state.sending == Sending::Body
        {
            self.sender.wait(state);
        }
        false
    }

    /// The frames to be written, with DATA up to `budget_bytes` of them; the caller reports with
    /// [`Self::sent`] how much it has written.
    pub fn output(&mut self, budget_bytes: usize) -> &[u8] {
        self.fill(budget_bytes);
        self.sender.output().bytes()
    }

    /// Removes what was written from the output.
    pub fn sent(&mut self, bytes: usize) {
        self.sender.sent(bytes);
    }

    /// The bytes of frames that were not written.
    pub fn unsent_bytes(&self) -> usize {
        self.sender.output().len()
    }

    /// Whether [`Self::output`] has something to write.
    pub fn has_output(&self) -> bool {
        self.sender.has_output()
    }

    /// Whether the client reads so little that the caller should not read from it, because what it
    /// sends may need responses.
    pub fn is_congested(&self) -> bool {
        self.unsent_bytes() > CONGESTED_BYTES
    }

    /// A stream whose last [`Self::send_data`] did not accept all, and that can send more now.
    ///
    /// The caller calls it after [`Self::output`] until it returns `None`.
    pub fn next_writable(&mut self) -> Option<StreamKey> {
        loop {
            let key = self.sender.next_writable()?;
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
        if self.error().is_some() {
            return;
        }
        let mut has_sent = false;
        // Each turn sends data, or ends the loop.
        loop {
            match self.sender.send_turn(&mut self.streams, budget_bytes) {
                Turn::Nothing => break,
                Turn::Sent => {}
                Turn::Ended(key) => self.finish_sending(key),
            }
            has_sent = true;
        }
        self.sender.find_writable(&mut self.streams);
        if has_sent {
            self.meters.relieve_by_data();
        }
    }
}
