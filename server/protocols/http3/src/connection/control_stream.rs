//! The client's control stream (RFC 9114 6.2.1 and 7.2, RFC 9218 7).
//!
//! Called by `unidirectional_stream` with its bytes. Invariant: SETTINGS come first, and once.

use super::event::Event;
use super::shared::Shared;
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{FramePart, FrameReader, frame_type};
use crate::settings::Settings;
use crate::varint::{VARINT_BYTES_MAX, read_varint};
use outboard_http_semantics::Priority;

/// The largest payload that is stored.
const PAYLOAD_BYTES_MAX: u64 = 1024;

/// The receiving part of the stream.
#[derive(Debug, Default)]
pub(super) struct ControlStream {
    reader: FrameReader,
    kind: u64,
    payload: Vec<u8>,
    has_settings: bool,
    goaway: Option<u64>,
    max_push_id: Option<u64>,
}

impl ControlStream {
    /// Reads the next bytes.
    pub(super) fn receive(
        &mut self,
        mut input: &[u8],
        shared: &mut Shared,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), ConnectionError> {
        while let Some(part) = self.reader.next(&mut input) {
            match part {
                FramePart::Start { kind, len } => {
                    self.start(kind, len)?;
                    shared.skipped.add(2)?;
                }
                FramePart::Payload(payload) => {
                    shared.skipped.add(payload.len() as u64)?;
                    if is_known(self.kind) {
                        self.payload.extend_from_slice(payload);
                    }
                }
                FramePart::End => self.end(sink)?,
            }
        }
        Ok(())
    }

    fn start(&mut self, kind: u64, len: u64) -> Result<(), ConnectionError> {
        use frame_type::*;
        self.kind = kind;
        self.payload.clear();
        let is_settings = kind == SETTINGS;
        if !self.has_settings && !is_settings {
            return error(ErrorCode::MISSING_SETTINGS, "control stream without settings");
        }
        match kind {
            DATA | HEADERS | PUSH_PROMISE => {
                error(ErrorCode::FRAME_UNEXPECTED, "frame not allowed on the control stream")
            }
            _ if frame_type::is_of_http2_only(kind) => {
                error(ErrorCode::FRAME_UNEXPECTED, "frame of HTTP/2")
            }
            SETTINGS if std::mem::replace(&mut self.has_settings, true) => {
                error(ErrorCode::FRAME_UNEXPECTED, "second settings")
            }
            CANCEL_PUSH | GOAWAY | MAX_PUSH_ID if len > VARINT_BYTES_MAX as u64 => {
                error(ErrorCode::FRAME_ERROR, "frame is too long")
            }
            _ if is_known(kind) && len > PAYLOAD_BYTES_MAX => {
                error(ErrorCode::EXCESSIVE_LOAD, "frame is too long")
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), ConnectionError> {
        let mut payload = &self.payload[..];
        match self.kind {
            frame_type::SETTINGS => sink(Event::Settings(Settings::read(payload)?)),
            frame_type::GOAWAY => {
                let push_id = read_identifier(payload)?;
                if self.goaway.is_some_and(|before| push_id > before) {
                    return error(ErrorCode::ID_ERROR, "identifier of GOAWAY increased");
                }
                self.goaway = Some(push_id);
                sink(Event::GoAway { push_id });
            }
            frame_type::MAX_PUSH_ID => {
                let push_id = read_identifier(payload)?;
                if self.max_push_id.is_some_and(|before| push_id < before) {
                    return error(ErrorCode::ID_ERROR, "identifier of MAX_PUSH_ID decreased");
                }
                self.max_push_id = Some(push_id);
            }
            // Nothing is pushed.
            frame_type::CANCEL_PUSH => {
                read_identifier(payload)?;
                return error(ErrorCode::ID_ERROR, "push was not promised");
            }
            frame_type::PRIORITY_UPDATE_OF_PUSH => {
                return error(ErrorCode::ID_ERROR, "push was not promised");
            }
            frame_type::PRIORITY_UPDATE => match read_varint(&mut payload) {
                None => return error(ErrorCode::FRAME_ERROR, "priority without identifier"),
                Some(stream_id) if stream_id & 3 != 0 => {
                    return error(ErrorCode::ID_ERROR, "priority of a stream without request");
                }
                Some(stream_id) => {
                    sink(Event::PriorityUpdate { stream_id, priority: Priority::parse(payload) });
                }
            },
            _ => {}
        }
        Ok(())
    }
}

/// Whether the payload of a frame is of use.
fn is_known(kind: u64) -> bool {
    use frame_type::*;
    let is_update = matches!(kind, PRIORITY_UPDATE | PRIORITY_UPDATE_OF_PUSH);
    is_update || matches!(kind, SETTINGS | GOAWAY | MAX_PUSH_ID | CANCEL_PUSH)
}

/// A payload that is one integer.
fn read_identifier(mut payload: &[u8]) -> Result<u64, ConnectionError> {
    match read_varint(&mut payload) {
        Some(identifier) if payload.is_empty() => Ok(identifier),
        _ => error(ErrorCode::FRAME_ERROR, "frame is not one identifier"),
    }
}

fn error<T>(code: ErrorCode, description: &'static str) -> Result<T, ConnectionError> {
    Err(ConnectionError::new(code, description))
}
