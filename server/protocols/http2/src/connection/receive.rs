//! Input: which frame comes next, and the frames of the connection (RFC 9113 5.5, 6).
//!
//! Called by the task that reads the session. Invariant: a frame is handled once it is complete, except
//! DATA, which is delivered as it arrives.

use super::Connection;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::{Event, Handled, Received, Step};
use crate::frame::{FRAME_HEAD_BYTES, FrameHead, MIN_MAX_FRAME_BYTES, PREFACE, flag, kind};
use crate::frame::{read_u32, write_frame, write_ping};
use crate::meter::Metered;

impl Connection {
    /// Receives input up to the next event, and removes it from the front of `input`.
    ///
    /// Returns `None` when the input does not suffice for another event. What is left, fewer than
    /// [`MAX_INPUT_BYTES`](crate::MAX_INPUT_BYTES), has to come first in the next call. `now_ms` is a monotonic time.
    ///
    /// # Errors
    /// The connection has ended. The output has a GOAWAY, which the caller writes before it closes.
    pub fn receive<'c, 'i>(
        &'c mut self,
        input: &mut &'i [u8],
        now_ms: u64,
    ) -> Result<Option<Event<'c, 'i>>, ConnectionError> {
        self.now_ms = now_ms;
        loop {
            match self.step(input) {
                Ok(Step::Incomplete) => return Ok(None),
                Ok(Step::Consumed(bytes)) => *input = &input[bytes..],
                Ok(Step::Event(bytes, received)) => {
                    let (consumed, rest) = input.split_at(bytes);
                    *input = rest;
                    return Ok(Some(self.event(received, consumed)));
                }
                Err(error) => {
                    self.fail(error);
                    return Err(error);
                }
            }
        }
    }

    fn event<'c, 'i>(&'c mut self, received: Received, consumed: &'i [u8]) -> Event<'c, 'i> {
        match received {
            Received::Head { stream, is_end } => {
                Event::Head { stream, head: self.heads.head_mut(), is_end }
            }
            Received::HeadTooLarge { stream } => Event::HeadTooLarge { stream },
            Received::Data { stream, start, end, is_end } => {
                Event::Data { stream, data: &consumed[start..end], is_end }
            }
            Received::Trailers { stream } => {
                Event::Trailers { stream, fields: self.heads.head().fields() }
            }
            Received::Reset { stream, code, is_by_client } => {
                Event::Reset { stream, code, is_by_client }
            }
            Received::PriorityUpdate { stream, priority } => {
                Event::PriorityUpdate { stream, priority }
            }
            Received::GoAway { code } => Event::GoAway { code },
            Received::PingAck { opaque } => Event::PingAck { opaque },
        }
    }

    fn step(&mut self, input: &[u8]) -> Result<Step, ConnectionError> {
        if self.data.is_within_frame() {
            return Ok(self.continue_data(input));
        }
        if self.lifecycle.expects_preface()? {
            return self.read_preface(input);
        }
        let Some(head) = FrameHead::read(input) else { return Ok(Step::Incomplete) };
        if head.len > MIN_MAX_FRAME_BYTES as usize {
            return Err(ConnectionError::FrameTooLong);
        }
        self.check_order(head)?;
        if head.kind == kind::DATA {
            return self.begin_data(head, &input[FRAME_HEAD_BYTES..]);
        }
        let end = FRAME_HEAD_BYTES + head.len;
        let Some(payload) = input.get(FRAME_HEAD_BYTES..end) else { return Ok(Step::Incomplete) };
        Ok(match self.handle(head, payload)? {
            Some(received) => Step::Event(end, received),
            None => Step::Consumed(end),
        })
    }

    /// RFC 9113 3.4.
    fn read_preface(&mut self, input: &[u8]) -> Result<Step, ConnectionError> {
        let len = input.len().min(PREFACE.len());
        if input[..len] != PREFACE[..len] {
            return Err(ConnectionError::InvalidPreface);
        }
        if len < PREFACE.len() {
            return Ok(Step::Incomplete);
        }
        self.lifecycle.receive_preface();
        Ok(Step::Consumed(len))
    }

    /// RFC 9113 3.4, 6.10.
    fn check_order(&mut self, head: FrameHead) -> Result<(), ConnectionError> {
        self.lifecycle.check_first(head)?;
        match self.heads.expects_continuation_of() {
            None if head.kind != kind::CONTINUATION => Ok(()),
            Some(id) if head.kind == kind::CONTINUATION && head.stream_id == id => Ok(()),
            _ => Err(ConnectionError::ContinuationExpected),
        }
    }

    fn handle(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        match head.kind {
            kind::HEADERS => self.receive_headers(head, payload),
            kind::CONTINUATION => self.receive_continuation(head, payload),
            kind::WINDOW_UPDATE => self.receive_window_update(head, payload),
            kind::RST_STREAM => self.receive_rst_stream(head, payload),
            kind::PRIORITY => self.receive_priority(head, payload),
            kind::PRIORITY_UPDATE => self.receive_priority_update(head, payload),
            kind::SETTINGS => self.receive_settings(head, payload),
            kind::PING => self.receive_ping(head, payload),
            kind::GOAWAY => receive_goaway(head, payload),
            kind::PUSH_PROMISE => Err(ConnectionError::PushByClient),
            // Unknown types are ignored (RFC 9113 4.1).
            _ => self.meters.count(Metered::Stray, self.now_ms).map(|()| None),
        }
    }

    /// RFC 9113 6.5.
    fn receive_settings(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        if head.stream_id != 0 {
            return Err(ConnectionError::InvalidStreamId);
        }
        self.meters.count(Metered::Settings, self.now_ms)?;
        if head.has(flag::ACK) {
            return if head.len == 0 { Ok(None) } else { Err(ConnectionError::InvalidFrameLength) };
        }
        let peer = self.peer.changed(payload)?;
        let before = std::mem::replace(&mut self.peer, peer);
        if peer.header_table_bytes != before.header_table_bytes {
            self.sender.set_table_size(peer.header_table_bytes as usize);
        }
        let difference =
            i64::from(peer.stream_window_bytes) - i64::from(before.stream_window_bytes);
        if difference != 0 {
            let changed = self.sender.change_stream_windows(&mut self.streams, difference);
            changed.map_err(|_| ConnectionError::InvalidInitialWindow)?;
        }
        write_frame(self.sender.buffer(), kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(None)
    }

    /// RFC 9113 6.7.
    fn receive_ping(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        if head.stream_id != 0 {
            return Err(ConnectionError::InvalidStreamId);
        }
        let opaque = payload.try_into().map_err(|_| ConnectionError::InvalidFrameLength)?;
        self.meters.count(Metered::Ping, self.now_ms)?;
        if !head.has(flag::ACK) {
            write_ping(self.sender.buffer(), opaque, true);
            return Ok(None);
        }
        let is_own = self.lifecycle.receive_ping_ack(opaque, self.sender.buffer());
        Ok((!is_own).then_some(Received::PingAck { opaque }))
    }
}

/// RFC 9113 6.8.
fn receive_goaway(head: FrameHead, payload: &[u8]) -> Handled {
    if head.stream_id != 0 {
        return Err(ConnectionError::InvalidStreamId);
    }
    let code = payload.get(4..).and_then(read_u32);
    let code = ErrorCode(code.ok_or(ConnectionError::InvalidFrameLength)?);
    Ok(Some(Received::GoAway { code }))
}
