//! WINDOW_UPDATE, RST_STREAM, PRIORITY and PRIORITY_UPDATE (RFC 9113 6.3, 6.4, 6.9, RFC 9218 7.1).
//!
//! Called by `receive`. Invariant: a frame for a stream that is closed has no effect.

use super::Connection;
use super::receive::Handled;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Received;
use crate::frame::{FrameHead, MAX_STREAM_ID, read_u32};
use crate::meter::Metered;
use outboard_http_semantics::Priority;

/// Priorities of streams that are not open yet.
const EARLY_PRIORITIES_MAX: usize = 16;

impl Connection {
    /// RFC 9113 6.9.
    pub(super) fn receive_window_update(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        let increment = read_exact_u32(payload)? & MAX_STREAM_ID;
        self.meters.count(Metered::WindowUpdate, self.now_ms)?;
        if head.stream_id == 0 {
            if increment == 0 {
                return Err(ConnectionError::EmptyWindowUpdate);
            }
            let added = self.send_window.add(increment);
            return added.map(|()| None).map_err(|_| ConnectionError::WindowOverflow);
        }
        self.check_not_idle(head.stream_id)?;
        let Some(key) = self.streams.find(head.stream_id) else { return Ok(None) };
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let code = if increment == 0 {
            ErrorCode::PROTOCOL_ERROR
        } else if stream.send_window.add(increment).is_err() {
            ErrorCode::FLOW_CONTROL_ERROR
        } else {
            self.scheduler.add(key, stream);
            return Ok(None);
        };
        self.reset_provoked(key.id, code)?;
        Ok(Some(Received::Reset { stream: key, code, is_by_client: false }))
    }

    /// RFC 9113 6.4.
    pub(super) fn receive_rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        let code = ErrorCode(read_exact_u32(payload)?);
        self.check_not_idle(head.stream_id)?;
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
        if id > self.last_id {
            self.add_early_priority(id, priority);
            return Ok(None);
        }
        let Some(key) = self.streams.find(id) else { return Ok(None) };
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        self.scheduler.set_priority(key, stream, priority);
        Ok(Some(Received::PriorityUpdate { stream: key, priority }))
    }

    fn add_early_priority(&mut self, id: u32, priority: Priority) {
        self.early_priorities.retain(|(other, _)| *other != id);
        if self.early_priorities.len() < EARLY_PRIORITIES_MAX {
            self.early_priorities.push((id, priority));
        }
    }

    /// The update that preceded a stream. Those of earlier ones, which were not opened, are removed.
    pub(super) fn take_early_priority(&mut self, id: u32) -> Option<Priority> {
        if self.early_priorities.is_empty() {
            return None;
        }
        let found = self.early_priorities.iter().find(|(other, _)| *other == id);
        let priority = found.map(|(_, priority)| *priority);
        self.early_priorities.retain(|(other, _)| *other > id);
        priority
    }

    /// RFC 9113 5.1: a stream that was not opened has neither windows nor an end.
    fn check_not_idle(&self, id: u32) -> Result<(), ConnectionError> {
        match id {
            0 => Err(ConnectionError::InvalidStreamId),
            _ if id <= self.last_id || self.ignores_new_streams() => Ok(()),
            _ => Err(ConnectionError::IdleStream),
        }
    }
}

fn read_exact_u32(payload: &[u8]) -> Result<u32, ConnectionError> {
    match payload.len() {
        4 => read_u32(payload).ok_or(ConnectionError::InvalidFrameLength),
        _ => Err(ConnectionError::InvalidFrameLength),
    }
}
