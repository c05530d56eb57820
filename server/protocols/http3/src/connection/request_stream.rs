//! A request stream: HEADERS, DATA, and HEADERS with trailers (RFC 9114 4.1).
//!
//! Called by `connection` with the bytes of the stream. Invariant: nothing is stored but an incomplete
//! or blocked field section, which is bounded.

use super::event::Event;
use super::shared::Shared;
use crate::error::{ConnectionError, ErrorCode, StreamError};
use crate::frame::{FramePart, FrameReader, frame_type};
use outboard_header_compression::qpack::{Decoded, FieldSection};
use outboard_http_semantics::{HeadReader, MalformedFields, SectionKind};
use std::ops::ControlFlow;

/// What is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
    /// The body of CONNECT, which has no trailers (RFC 9114 4.4).
    Tunnel,
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
    /// It waits for the encoder stream.
    Blocked { consumed: usize },
    /// It ended.
    Closed,
}

type Sink<'s> = &'s mut dyn FnMut(Event<'_>);

/// The receiving part of a request stream.
#[derive(Debug)]
pub(super) struct RequestStream {
    id: u64,
    reader: FrameReader,
    phase: Phase,
    frame: Frame,
    /// An incomplete or blocked field section.
    section: Vec<u8>,
    is_blocked: bool,
    /// The head was reported as the end.
    is_ended: bool,
    content_length: Option<u64>,
    body_bytes: u64,
}

impl RequestStream {
    pub(super) fn new(id: u64) -> Self {
        Self {
            id,
            reader: FrameReader::new(),
            phase: Phase::Head,
            frame: Frame::Skipped,
            section: Vec::new(),
            is_blocked: false,
            is_ended: false,
            content_length: None,
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
        if self.is_blocked {
            let is_end = fin && input.is_empty();
            match self.decode_stored(is_end, shared, sink)? {
                Progress::Open => {}
                progress => return Ok(progress),
            }
        }
        while let Some(part) = self.reader.next(&mut input) {
            let consumed = bytes.len() - input.len();
            let is_end = fin && input.is_empty();
            let progress = match part {
                FramePart::Start { kind, len } => self.start(kind, len, shared, sink)?,
                FramePart::Payload(payload) => {
                    self.read_payload(payload, consumed, is_end, shared, sink)?
                }
                FramePart::End if matches!(self.frame, Frame::Headers { .. }) => {
                    self.decode_stored(is_end, shared, sink)?
                }
                FramePart::End => Progress::Open,
            };
            match progress {
                Progress::Open => {}
                Progress::Blocked { .. } => return Ok(Progress::Blocked { consumed }),
                Progress::Closed => return Ok(Progress::Closed),
            }
        }
        if fin { self.finish(shared, sink) } else { Ok(Progress::Open) }
    }

    /// Begins a frame (RFC 9114 7.2).
    fn start(
        &mut self,
        kind: u64,
        len: u64,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<Progress, ConnectionError> {
        use frame_type::*;
        let unexpected =
            ConnectionError::new(ErrorCode::FRAME_UNEXPECTED, "frame not allowed in a request");
        self.frame = match (kind, self.phase) {
            (DATA, Phase::Body | Phase::Tunnel) => Frame::Data,
            (HEADERS, Phase::Head | Phase::Body) => Frame::Headers { len },
            (DATA | HEADERS | CANCEL_PUSH | SETTINGS | PUSH_PROMISE | GOAWAY | MAX_PUSH_ID, _)
            | (PRIORITY_UPDATE | PRIORITY_UPDATE_OF_PUSH, _) => return Err(unexpected),
            _ if frame_type::is_of_http2_only(kind) => return Err(unexpected),
            _ => Frame::Skipped,
        };
        match self.frame {
            Frame::Headers { len } if len > shared.config.field_section_bytes_max as u64 => {
                Ok(self.fail(StreamError::FieldsTooLarge, shared, sink))
            }
            Frame::Skipped => shared.skipped.add(2).map(|()| Progress::Open),
            // An empty frame is work without content.
            Frame::Data if len == 0 => shared.skipped.add(2).map(|()| Progress::Open),
            _ => Ok(Progress::Open),
        }
    }

    /// Reads a part of a frame's payload, which ends at `consumed` of the input.
    fn read_payload(
        &mut self,
        payload: &[u8],
        consumed: usize,
        is_end: bool,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<Progress, ConnectionError> {
        match self.frame {
            Frame::Skipped => shared.skipped.add(payload.len() as u64).map(|()| Progress::Open),
            Frame::Headers { len } if len == payload.len() as u64 => {
                self.decode(payload, is_end, shared, sink)
            }
            Frame::Headers { .. } => {
                self.section.extend_from_slice(payload);
                Ok(Progress::Open)
            }
            Frame::Data => {
                self.body_bytes = self.body_bytes.saturating_add(payload.len() as u64);
                if self.content_length.is_some_and(|length| self.body_bytes > length) {
                    return Ok(self.fail(StreamError::ContentLengthMismatch, shared, sink));
                }
                let range = consumed - payload.len()..consumed;
                sink(Event::Data { stream_id: self.id, range });
                Ok(Progress::Open)
            }
        }
    }

    fn decode_stored(
        &mut self,
        is_end: bool,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<Progress, ConnectionError> {
        let section = std::mem::take(&mut self.section);
        self.is_blocked = false;
        self.decode(&section, is_end, shared, sink)
    }

    /// Decodes a complete field section, and stores it if it is blocked.
    fn decode(
        &mut self,
        section: &[u8],
        is_end: bool,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<Progress, ConnectionError> {
        let error = match self.decode_fields(section, shared)? {
            Decoded::Blocked => {
                self.section = section.to_vec();
                self.is_blocked = true;
                // The caller knows how much of the input it has consumed.
                return Ok(Progress::Blocked { consumed: 0 });
            }
            Decoded::Section(FieldSection::Complete) => self.accept(is_end, shared, sink).err(),
            Decoded::Section(FieldSection::TooLong) => Some(StreamError::FieldsTooLarge),
            Decoded::Section(FieldSection::Stopped(error)) => Some(StreamError::Malformed(error)),
        };
        self.frame = Frame::Skipped;
        Ok(error.map_or(Progress::Open, |error| self.fail(error, shared, sink)))
    }

    fn decode_fields(
        &self,
        section: &[u8],
        shared: &mut Shared,
    ) -> Result<Decoded<MalformedFields>, ConnectionError> {
        let kind = match self.phase {
            Phase::Head => {
                SectionKind::Request { allows_protocol: shared.config.enable_connect_protocol }
            }
            _ => SectionKind::Trailers,
        };
        let bytes_max = shared.config.field_section_bytes_max;
        let mut reader = HeadReader::new(&mut shared.head, kind);
        let add = |name: &[u8], value: &[u8]| {
            reader.add(name, value).map_or_else(ControlFlow::Break, ControlFlow::Continue)
        };
        let decoded = shared.decoder.decode(self.id, section, bytes_max, add);
        let decoded = decoded.map_err(|error| {
            ConnectionError::of_qpack(ErrorCode::QPACK_DECOMPRESSION_FAILED, error)
        })?;
        if matches!(decoded, Decoded::Section(FieldSection::Complete))
            && let Err(error) = reader.finish()
        {
            return Ok(Decoded::Section(FieldSection::Stopped(error)));
        }
        Ok(decoded)
    }

    /// Reports the head or the trailers that were decoded.
    fn accept(
        &mut self,
        is_end: bool,
        shared: &mut Shared,
        sink: Sink<'_>,
    ) -> Result<(), StreamError> {
        let stream_id = self.id;
        if self.phase != Phase::Head {
            self.phase = Phase::AfterTrailers;
            sink(Event::Trailers { stream_id, fields: shared.head.fields() });
            return Ok(());
        }
        shared.skipped.restart();
        let head = &shared.head;
        // RFC 9114 4.3.1: every request of a scheme that browsers know has a host.
        if head.authority().is_empty() {
            return Err(StreamError::Malformed(MalformedFields::InvalidAuthority));
        }
        if head.is_connect() {
            self.phase = Phase::Tunnel;
        } else {
            self.phase = Phase::Body;
            self.content_length = head.content_length();
        }
        if is_end && self.content_length.is_some_and(|length| length > 0) {
            return Err(StreamError::ContentLengthMismatch);
        }
        sink(Event::Head { stream_id, head, is_end });
        self.is_ended = is_end;
        Ok(())
    }

    /// The end of the stream.
    fn finish(&mut self, shared: &mut Shared, sink: Sink<'_>) -> Result<Progress, ConnectionError> {
        if !self.reader.is_between_frames() {
            return Err(ConnectionError::new(ErrorCode::FRAME_ERROR, "frame is incomplete"));
        }
        if self.phase == Phase::Head {
            return Ok(self.fail(StreamError::Incomplete, shared, sink));
        }
        if self.content_length.is_some_and(|length| self.body_bytes != length) {
            return Ok(self.fail(StreamError::ContentLengthMismatch, shared, sink));
        }
        if !self.is_ended {
            sink(Event::End { stream_id: self.id });
        }
        Ok(Progress::Closed)
    }

    fn fail(&self, error: StreamError, shared: &mut Shared, sink: Sink<'_>) -> Progress {
        shared.decoder.cancel_stream(self.id);
        sink(Event::StreamError { stream_id: self.id, error });
        Progress::Closed
    }
}
