//! The stream of a response: HEADERS, DATA, and HEADERS with trailers (RFC 9114 4.1).
//!
//! Called by `client` with the bytes of the stream. Invariant: nothing is stored but an incomplete field
//! section, which is bounded.

use super::event::ClientEvent;
use super::shared::Shared;
use crate::error::{ConnectionError, ErrorCode, StreamError};
use crate::frame::{FramePart, FrameReader, frame_type};
use outboard_header_compression::qpack::{Decoded, FieldSection};
use outboard_http_semantics::{MalformedFields, check_field};
use std::ops::ControlFlow;

/// What is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Interim heads, and the final one.
    Head,
    Body,
    AfterTrailers,
}

/// What the current frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    Data,
    Headers {
        len: u64,
    },
    /// An unknown one, or a field section that was decoded.
    Skipped,
}

/// What becomes of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More bytes follow.
    Open,
    /// It ended.
    Closed,
}

type Sink<'s> = &'s mut dyn FnMut(ClientEvent<'_>);

/// The receiving part of a request stream.
#[derive(Debug)]
pub(super) struct ResponseStream {
    id: u64,
    reader: FrameReader,
    phase: Phase,
    frame: Frame,
    /// An incomplete field section.
    section: Vec<u8>,
    /// The request was HEAD.
    is_head: bool,
    /// What the body must have, if it is known.
    length: Option<u64>,
    body_bytes: u64,
}

impl ResponseStream {
    pub(super) fn new(id: u64, is_head: bool) -> Self {
        Self {
            id,
            reader: FrameReader::new(),
            phase: Phase::Head,
            frame: Frame::Skipped,
            section: Vec::new(),
            is_head,
            length: None,
            body_bytes: 0,
        }
    }

    /// Reads the next bytes.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        fin: bool,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<Progress, ConnectionError> {
        let mut input = bytes;
        while let Some(part) = self.reader.next(&mut input) {
            let consumed = bytes.len() - input.len();
            let read = match part {
                FramePart::Start { kind, len } => self.start(kind, len, shared)?,
                FramePart::Payload(payload) => {
                    self.read_payload(payload, consumed, shared, sink)?
                }
                FramePart::End if matches!(self.frame, Frame::Headers { .. }) => {
                    let section = std::mem::take(&mut self.section);
                    self.decode(&section, shared, sink)?
                }
                FramePart::End => Ok(()),
            };
            if let Err(error) = read {
                return Ok(self.fail(error, sink));
            }
        }
        if fin { self.finish(sink) } else { Ok(Progress::Open) }
    }

    /// Begins a frame (RFC 9114 7.2).
    fn start(
        &mut self,
        kind: u64,
        len: u64,
        shared: &mut Shared,
    ) -> Result<Result<(), StreamError>, ConnectionError> {
        use frame_type::*;
        let error = |code| Err(ConnectionError::new(code, "frame not allowed in a response"));
        self.frame = match (kind, self.phase) {
            (DATA, Phase::Body) => Frame::Data,
            (HEADERS, Phase::Head | Phase::Body) => Frame::Headers { len },
            // No push is allowed (RFC 9114 7.2.5).
            (PUSH_PROMISE, _) => return error(ErrorCode::ID_ERROR),
            (DATA | HEADERS | CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID, _)
            | (PRIORITY_UPDATE | PRIORITY_UPDATE_OF_PUSH, _) => {
                return error(ErrorCode::FRAME_UNEXPECTED);
            }
            _ if frame_type::is_of_http2_only(kind) => return error(ErrorCode::FRAME_UNEXPECTED),
            _ => Frame::Skipped,
        };
        match self.frame {
            Frame::Headers { len } if len > shared.config.field_section_bytes_max as u64 => {
                return Ok(Err(StreamError::FieldsTooLarge));
            }
            Frame::Skipped => shared.skipped.add(2)?,
            // An empty frame is work without content.
            Frame::Data if len == 0 => shared.skipped.add(2)?,
            _ => {}
        }
        Ok(Ok(()))
    }

    /// Reads a part of a frame's payload, which ends at `consumed` of the input.
    fn read_payload(
        &mut self,
        payload: &[u8],
        consumed: usize,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<Result<(), StreamError>, ConnectionError> {
        match self.frame {
            Frame::Skipped => shared.skipped.add(payload.len() as u64)?,
            Frame::Headers { len } if len == payload.len() as u64 => {
                return self.decode(payload, shared, sink);
            }
            Frame::Headers { .. } => self.section.extend_from_slice(payload),
            Frame::Data => {
                self.body_bytes = self.body_bytes.saturating_add(payload.len() as u64);
                if self.length.is_some_and(|length| self.body_bytes > length) {
                    return Ok(Err(StreamError::ContentLengthMismatch));
                }
                let range = consumed - payload.len()..consumed;
                sink(ClientEvent::Data { stream_id: self.id, range });
            }
        }
        Ok(Ok(()))
    }

    /// Decodes a complete field section.
    fn decode(
        &mut self,
        section: &[u8],
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<Result<(), StreamError>, ConnectionError> {
        self.frame = Frame::Skipped;
        let accepted = match self.decode_fields(section, shared)? {
            FieldSection::Complete => self.accept(shared, sink).map_err(StreamError::Malformed),
            FieldSection::TooLong => Err(StreamError::FieldsTooLarge),
            FieldSection::Stopped(error) => Err(StreamError::Malformed(error)),
        };
        if accepted.is_ok() && self.phase == Phase::Head {
            // There is no limit to the number of interim heads.
            shared.skipped.add(section.len() as u64 + 2)?;
        }
        Ok(accepted)
    }

    fn decode_fields(
        &self,
        section: &[u8],
        shared: &mut Shared,
    ) -> Result<FieldSection<MalformedFields>, ConnectionError> {
        let head = &mut shared.head;
        let is_head = self.phase == Phase::Head;
        head.clear();
        let push = |name: &[u8], value: &[u8]| {
            let is_trailer_valid = || match name.first() {
                Some(b':') => Err(MalformedFields::UnexpectedPseudoField),
                _ => check_field(name, value),
            };
            let pushed = if is_head { head.push(name, value) } else { is_trailer_valid() };
            pushed.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        };
        let bytes_max = shared.config.field_section_bytes_max;
        let code = ErrorCode::QPACK_DECOMPRESSION_FAILED;
        match shared.decoder.decode(self.id, section, bytes_max, push) {
            Ok(Decoded::Section(section)) => Ok(section),
            Ok(Decoded::Blocked) => Err(ConnectionError::new(code, "there is no dynamic table")),
            Err(error) => Err(ConnectionError::of_qpack(code, error)),
        }
    }

    /// Reports the head that was decoded; trailers have no meaning for the caller.
    fn accept(&mut self, shared: &mut Shared, sink: Sink<'_>) -> Result<(), MalformedFields> {
        if self.phase != Phase::Head {
            self.phase = Phase::AfterTrailers;
            return Ok(());
        }
        shared.head.check()?;
        if shared.head.is_interim() {
            return Ok(());
        }
        shared.skipped.restart();
        self.phase = Phase::Body;
        // RFC 9110 6.4.1.
        let has_no_body = self.is_head || matches!(shared.head.status(), 204 | 304);
        self.length = if has_no_body { Some(0) } else { shared.head.content_length() };
        sink(ClientEvent::Head { stream_id: self.id, head: &shared.head });
        Ok(())
    }

    /// The end of the stream.
    fn finish(&mut self, sink: Sink<'_>) -> Result<Progress, ConnectionError> {
        if !self.reader.is_between_frames() {
            return Err(ConnectionError::new(ErrorCode::FRAME_ERROR, "frame is incomplete"));
        }
        if self.phase == Phase::Head {
            return Ok(self.fail(StreamError::Incomplete, sink));
        }
        if self.length.is_some_and(|length| self.body_bytes != length) {
            return Ok(self.fail(StreamError::ContentLengthMismatch, sink));
        }
        sink(ClientEvent::End { stream_id: self.id });
        Ok(Progress::Closed)
    }

    fn fail(&self, error: StreamError, sink: Sink<'_>) -> Progress {
        sink(ClientEvent::StreamError { stream_id: self.id, error });
        Progress::Closed
    }
}
