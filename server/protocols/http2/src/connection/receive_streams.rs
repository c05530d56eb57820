//! The frames of streams without data: HEADERS with CONTINUATION, WINDOW_UPDATE, RST_STREAM, PRIORITY and
//! PRIORITY_UPDATE (RFC 9113 6.2 to 6.4, 6.9, 6.10, RFC 9218 7.1).
//!
//! Called by `receive`. Invariants: each block of fields is decoded, whatever becomes of its stream; a frame for a
//! stream that is closed has no effect.

use super::Connection;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::{Handled, Received};
use crate::frame::{FrameHead, MAX_STREAM_ID, flag, read_u32};
use crate::head_decoder::BlockResult;
use crate::meter::Metered;
use crate::stream::{Stream, StreamKey};
use crate::streams::Closed;
use outboard_http_semantics::Priority;

impl Connection {
    /// RFC 9113 6.2.
    pub(super) fn receive_headers(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        match self.heads.headers(head, payload)? {
            Some(block) => self.receive_block(head.stream_id, head.has(flag::END_STREAM), block),
            None => Ok(None),
        }
    }

    /// RFC 9113 6.10.
    pub(super) fn receive_continuation(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        let Some(block) = self.heads.continuation(head, payload)? else { return Ok(None) };
        let handled = self.receive_block(block.stream_id, block.is_end, &block.bytes);
        self.heads.reuse(block);
        handled
    }

    /// Handles a complete block.
    fn receive_block(&mut self, id: u32, is_end: bool, block: &[u8]) -> Handled {
        if self.lifecycle.is_new(id) {
            return self.receive_request(id, is_end, block);
        }
        match self.streams.find(id) {
            Some(key) => self.receive_trailers(key, is_end, block),
            None => {
                self.heads.skip(block)?;
                self.meters.count(Metered::Stray, self.now_ms)?;
                match self.streams.why_closed(id) {
                    Closed::ByReset => Ok(None),
                    Closed::ByPeer => Err(ConnectionError::ClosedStream),
                    // RFC 9113 5.1.1.
                    Closed::Unknown => Err(ConnectionError::InvalidStreamId),
                }
            }
        }
    }

    fn receive_request(&mut self, id: u32, is_end: bool, block: &[u8]) -> Handled {
        if self.lifecycle.ignores_new_streams() {
            self.heads.skip(block)?;
            return Ok(None);
        }
        self.lifecycle.open(id);
        if self.streams.len() >= self.settings.max_concurrent_streams as usize {
            self.heads.skip(block)?;
            self.reset_provoked(id, ErrorCode::REFUSED_STREAM)?;
            return Ok(None);
        }
        match self.heads.request(block)? {
            BlockResult::Valid => self.open(id, is_end),
            BlockResult::TooLarge => {
                let stream = self.open_stream(id, is_end);
                Ok(Some(Received::HeadTooLarge { stream }))
            }
            BlockResult::Malformed => {
                self.reset_provoked(id, ErrorCode::PROTOCOL_ERROR)?;
                Ok(None)
            }
        }
    }

    /// Opens the stream of a valid request.
    fn open(&mut self, id: u32, is_end: bool) -> Handled {
        // RFC 9113 8.1.1.
        if is_end && self.heads.head().content_length().is_some_and(|length| length > 0) {
            self.reset_provoked(id, ErrorCode::PROTOCOL_ERROR)?;
            return Ok(None);
        }
        let key = self.open_stream(id, is_end);
        let early = self.early_priorities.take(id);
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let head = self.heads.head();
        stream.body_left = head.content_length();
        stream.is_tunnel = head.is_connect();
        // An update is newer than the request that it precedes (RFC 9218 7.1).
        if let Some(priority) = early.or(head.priority()) {
            stream.priority = priority;
            stream.has_priority = true;
        }
        Ok(Some(Received::Head { stream: key, is_end }))
    }

    fn open_stream(&mut self, id: u32, is_end: bool) -> StreamKey {
        let (send, receive) = (self.peer.stream_window_bytes, self.settings.stream_window_bytes);
        let mut stream = Stream::new(id, send, receive);
        stream.has_received_all = is_end;
        self.streams.open(stream)
    }

    fn receive_trailers(&mut self, key: StreamKey, is_end: bool, block: &[u8]) -> Handled {
        let result = self.heads.trailers(block)?;
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let code = if stream.has_received_all {
            ErrorCode::STREAM_CLOSED
        } else if !is_end || result != BlockResult::Valid || stream.body_left.is_some_and(|b| b > 0)
        {
            // RFC 9113 8.1, 8.1.1.
            ErrorCode::PROTOCOL_ERROR
        } else {
            self.finish_receiving(key);
            return Ok(Some(Received::Trailers { stream: key }));
        };
        self.reset_provoked(key.id, code)?;
        Ok(Some(Received::Reset { stream: key, code, is_by_client: false }))
    }

    /// RFC 9113 6.9.
    pub(super) fn receive_window_update(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        let increment = read_exact_u32(payload)? & MAX_STREAM_ID;
        self.meters.count(Metered::WindowUpdate, self.now_ms)?;
        if head.stream_id == 0 {
            if increment == 0 {
                return Err(ConnectionError::EmptyWindowUpdate);
            }
            let added = self.sender.add_window(increment);
            return added.map(|()| None).map_err(|_| ConnectionError::WindowOverflow);
        }
        self.lifecycle.check_not_idle(head.stream_id)?;
        let Some(key) = self.streams.find(head.stream_id) else { return Ok(None) };
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let code = if increment == 0 {
            ErrorCode::PROTOCOL_ERROR
        } else if self.sender.add_stream_window(key, stream, increment).is_err() {
            ErrorCode::FLOW_CONTROL_ERROR
        } else {
            return Ok(None);
        };
        self.reset_provoked(key.id, code)?;
        Ok(Some(Received::Reset { stream: key, code, is_by_client: false }))
    }

    /// RFC 9113 6.4.
    pub(super) fn receive_rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        let code = ErrorCode(read_exact_u32(payload)?);
        self.lifecycle.check_not_idle(head.stream_id)?;
        let Some(stream) = self.streams.find(head.stream_id) else {
            self.meters.count(Metered::Stray, self.now_ms)?;
            return Ok(None);
        };
        self.meters.count(Metered::Reset, self.now_ms)?;
        self.close(stream, false);
        Ok(Some(Received::Reset { stream, code, is_by_client: true }))
    }

    /// Deprecated and without effect (RFC 9113 5.3.2).
    pub(super) fn receive_priority(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        if head.stream_id == 0 {
            return Err(ConnectionError::InvalidStreamId);
        }
        self.meters.count(Metered::Priority, self.now_ms)?;
        // RFC 9113 6.3 requires only an error of the stream, which may be idle: that has no RST_STREAM.
        if payload.len() != 5 {
            return Err(ConnectionError::InvalidFrameLength);
        }
        // RFC 7540 5.3.1: a stream that depends on itself is an error of the stream. RFC 9113 ignores the
        // rest of the scheme, so a stream that is not open has nothing to be refused.
        let Some(key) = self.streams.find(head.stream_id) else { return Ok(None) };
        if read_exact_u32(&payload[..4])? & MAX_STREAM_ID != head.stream_id {
            return Ok(None);
        }
        let code = ErrorCode::PROTOCOL_ERROR;
        self.reset_provoked(key.id, code)?;
        Ok(Some(Received::Reset { stream: key, code, is_by_client: false }))
    }

    /// RFC 9218 7.1.
    pub(super) fn receive_priority_update(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        if head.stream_id != 0 {
            return Err(ConnectionError::InvalidPriorityUpdate);
        }
        self.meters.count(Metered::Priority, self.now_ms)?;
        let (id, value) = payload.split_at_checked(4).ok_or(ConnectionError::InvalidFrameLength)?;
        let id = read_exact_u32(id)? & MAX_STREAM_ID;
        if id.is_multiple_of(2) {
            return Err(ConnectionError::InvalidPriorityUpdate);
        }
        let priority = Priority::parse(value);
        if self.lifecycle.is_new(id) {
            self.early_priorities.set(id, priority);
            return Ok(None);
        }
        let Some(key) = self.streams.find(id) else { return Ok(None) };
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        self.sender.set_priority(key, stream, priority);
        Ok(Some(Received::PriorityUpdate { stream: key, priority }))
    }
}

fn read_exact_u32(payload: &[u8]) -> Result<u32, ConnectionError> {
    match payload.len() {
        4 => read_u32(payload).ok_or(ConnectionError::InvalidFrameLength),
        _ => Err(ConnectionError::InvalidFrameLength),
    }
}
