//! The unidirectional streams of a server: their types, and the control stream (RFC 9114 6.2 and 7.2,
//! RFC 9204 4.2).
//!
//! Called by `client`. Invariants: there is at most one stream of each type that the connection depends
//! on, and it does not end; SETTINGS come first on the control stream, and once.

use super::event::ClientEvent;
use super::shared::Shared;
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{FramePart, FrameReader, frame_type};
use crate::settings::Settings;
use crate::stream_type;
use crate::varint::{VARINT_BYTES_MAX, read_varint};
use std::collections::HashMap;

/// The largest payload that is stored.
const PAYLOAD_BYTES_MAX: u64 = 1024;

type Sink<'s> = &'s mut dyn FnMut(ClientEvent<'_>);

/// What is known of a stream.
#[derive(Debug)]
enum Stream {
    /// The first bytes of its type.
    Incomplete(Vec<u8>),
    Control,
    Encoder,
    Decoder,
}

/// All streams that are open.
#[derive(Debug, Default)]
pub(super) struct ServerStreams {
    streams: HashMap<u64, Stream>,
    control: ControlStream,
}

impl ServerStreams {
    /// Reads the next bytes of a stream.
    pub(super) fn receive(
        &mut self,
        stream_id: u64,
        mut input: &[u8],
        fin: bool,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<(), ConnectionError> {
        if let None | Some(Stream::Incomplete(_)) = self.streams.get(&stream_id) {
            self.read_type(stream_id, &mut input, shared, sink)?;
        }
        match self.streams.get(&stream_id) {
            Some(Stream::Control) => self.control.receive(input, shared, sink)?,
            Some(Stream::Encoder) => {
                shared.decoder.read_instructions(input).map_err(|error| {
                    ConnectionError::of_qpack(ErrorCode::QPACK_ENCODER_STREAM_ERROR, error)
                })?;
            }
            Some(Stream::Decoder) => {
                shared.encoder.read_instructions(input).map_err(|error| {
                    ConnectionError::of_qpack(ErrorCode::QPACK_DECODER_STREAM_ERROR, error)
                })?;
            }
            None | Some(Stream::Incomplete(_)) => {}
        }
        if fin { self.close(stream_id) } else { Ok(()) }
    }

    fn read_type(
        &mut self,
        stream_id: u64,
        input: &mut &[u8],
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<(), ConnectionError> {
        let mut head = match self.streams.remove(&stream_id) {
            Some(Stream::Incomplete(head)) => head,
            _ => Vec::new(),
        };
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            head.push(byte);
            if let Some(kind) = read_varint(&mut &head[..]) {
                return self.open(stream_id, kind, shared, sink);
            }
        }
        self.streams.insert(stream_id, Stream::Incomplete(head));
        Ok(())
    }

    fn open(
        &mut self,
        stream_id: u64,
        kind: u64,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<(), ConnectionError> {
        let stream = match kind {
            stream_type::CONTROL => Stream::Control,
            stream_type::QPACK_ENCODER => Stream::Encoder,
            stream_type::QPACK_DECODER => Stream::Decoder,
            // No push is allowed (RFC 9114 4.6).
            stream_type::PUSH => return error(ErrorCode::ID_ERROR, "push was not allowed"),
            _ => {
                shared.skipped.add_stream()?;
                sink(ClientEvent::UnknownStream { stream_id });
                return Ok(());
            }
        };
        let same = std::mem::discriminant(&stream);
        if self.streams.values().any(|other| std::mem::discriminant(other) == same) {
            return error(ErrorCode::STREAM_CREATION_ERROR, "second stream of its type");
        }
        self.streams.insert(stream_id, stream);
        Ok(())
    }

    /// The end of a stream, or its reset.
    pub(super) fn close(&mut self, stream_id: u64) -> Result<(), ConnectionError> {
        match self.streams.remove(&stream_id) {
            None | Some(Stream::Incomplete(_)) => Ok(()),
            Some(_) => {
                error(ErrorCode::CLOSED_CRITICAL_STREAM, "control or QPACK stream was closed")
            }
        }
    }
}

/// The receiving part of the control stream.
#[derive(Debug, Default)]
struct ControlStream {
    reader: FrameReader,
    kind: u64,
    payload: Vec<u8>,
    has_settings: bool,
    goaway: Option<u64>,
}

impl ControlStream {
    /// Reads the next bytes.
    fn receive(
        &mut self,
        mut input: &[u8],
        shared: &mut Shared,
        sink: Sink<'_>,
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
        if !self.has_settings && kind != SETTINGS {
            return error(ErrorCode::MISSING_SETTINGS, "control stream without settings");
        }
        match kind {
            DATA | HEADERS | PUSH_PROMISE | MAX_PUSH_ID => {
                error(ErrorCode::FRAME_UNEXPECTED, "frame not allowed on the control stream")
            }
            PRIORITY_UPDATE | PRIORITY_UPDATE_OF_PUSH => {
                error(ErrorCode::FRAME_UNEXPECTED, "priority from a server")
            }
            _ if frame_type::is_of_http2_only(kind) => {
                error(ErrorCode::FRAME_UNEXPECTED, "frame of HTTP/2")
            }
            CANCEL_PUSH => error(ErrorCode::ID_ERROR, "push was not allowed"),
            SETTINGS if std::mem::replace(&mut self.has_settings, true) => {
                error(ErrorCode::FRAME_UNEXPECTED, "second settings")
            }
            GOAWAY if len > VARINT_BYTES_MAX as u64 => {
                error(ErrorCode::FRAME_ERROR, "frame is too long")
            }
            SETTINGS if len > PAYLOAD_BYTES_MAX => {
                error(ErrorCode::EXCESSIVE_LOAD, "frame is too long")
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, sink: Sink<'_>) -> Result<(), ConnectionError> {
        let mut payload = &self.payload[..];
        match self.kind {
            frame_type::SETTINGS => sink(ClientEvent::Settings(Settings::read(payload)?)),
            frame_type::GOAWAY => {
                let stream_id = match read_varint(&mut payload) {
                    Some(stream_id) if payload.is_empty() => stream_id,
                    _ => return error(ErrorCode::FRAME_ERROR, "frame is not one identifier"),
                };
                let is_increased = self.goaway.is_some_and(|before| stream_id > before);
                if is_increased || stream_id & 3 != 0 {
                    return error(ErrorCode::ID_ERROR, "identifier of GOAWAY is not valid");
                }
                self.goaway = Some(stream_id);
                sink(ClientEvent::GoAway { stream_id });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether the payload of a frame is of use.
fn is_known(kind: u64) -> bool {
    matches!(kind, frame_type::SETTINGS | frame_type::GOAWAY)
}

fn error<T>(code: ErrorCode, description: &'static str) -> Result<T, ConnectionError> {
    Err(ConnectionError::new(code, description))
}
