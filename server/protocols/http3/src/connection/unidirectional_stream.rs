//! The unidirectional streams of a client: their types, and where their bytes go (RFC 9114 6.2,
//! RFC 9204 4.2).
//!
//! Called by `connection`. Invariant: there is at most one stream of each type that the connection
//! depends on, and it does not end.

use super::control_stream::ControlStream;
use super::event::Event;
use super::shared::Shared;
use crate::error::{ConnectionError, ErrorCode};
use crate::stream_type;
use crate::varint::read_varint;
use outboard_header_compression::qpack::Encoder;
use std::collections::HashMap;

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
pub(super) struct UnidirectionalStreams {
    streams: HashMap<u64, Stream>,
    control: ControlStream,
}

impl UnidirectionalStreams {
    /// Reads the next bytes of a stream.
    pub(super) fn receive(
        &mut self,
        stream_id: u64,
        bytes: &[u8],
        fin: bool,
        shared: &mut Shared,
        encoder: &mut Encoder,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), ConnectionError> {
        let mut input = bytes;
        let is_typed = match self.streams.get(&stream_id) {
            None | Some(Stream::Incomplete(_)) => {
                self.read_type(stream_id, &mut input, shared, sink)?
            }
            Some(_) => true,
        };
        if is_typed {
            self.receive_typed(stream_id, input, shared, encoder, sink)?;
        }
        if fin { self.close(stream_id) } else { Ok(()) }
    }

    fn receive_typed(
        &mut self,
        stream_id: u64,
        input: &[u8],
        shared: &mut Shared,
        encoder: &mut Encoder,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), ConnectionError> {
        match self.streams.get(&stream_id) {
            Some(Stream::Control) => self.control.receive(input, shared, sink),
            Some(Stream::Encoder) => {
                shared.decoder.read_instructions(input).map_err(|error| {
                    ConnectionError::of_qpack(ErrorCode::QPACK_ENCODER_STREAM_ERROR, error)
                })?;
                while let Some(stream_id) = shared.decoder.next_unblocked() {
                    sink(Event::Unblocked { stream_id });
                }
                Ok(())
            }
            Some(Stream::Decoder) => encoder.read_instructions(input).map_err(|error| {
                ConnectionError::of_qpack(ErrorCode::QPACK_DECODER_STREAM_ERROR, error)
            }),
            None | Some(Stream::Incomplete(_)) => Ok(()),
        }
    }

    /// Reads the type; returns whether the stream is one that is read on.
    fn read_type(
        &mut self,
        stream_id: u64,
        input: &mut &[u8],
        shared: &mut Shared,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, ConnectionError> {
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
        Ok(false)
    }

    fn open(
        &mut self,
        stream_id: u64,
        kind: u64,
        shared: &mut Shared,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, ConnectionError> {
        let stream = match kind {
            stream_type::CONTROL => Stream::Control,
            stream_type::QPACK_ENCODER => Stream::Encoder,
            stream_type::QPACK_DECODER => Stream::Decoder,
            stream_type::PUSH => return Err(creation_error("push stream of a client")),
            _ => {
                shared.skipped.add_stream()?;
                sink(Event::UnknownStream { stream_id });
                return Ok(false);
            }
        };
        let same = std::mem::discriminant(&stream);
        if self.streams.values().any(|other| std::mem::discriminant(other) == same) {
            return Err(creation_error("second stream of its type"));
        }
        self.streams.insert(stream_id, stream);
        Ok(true)
    }

    /// The end of a stream, or its reset.
    pub(super) fn close(&mut self, stream_id: u64) -> Result<(), ConnectionError> {
        match self.streams.remove(&stream_id) {
            None | Some(Stream::Incomplete(_)) => Ok(()),
            Some(_) => Err(ConnectionError::new(
                ErrorCode::CLOSED_CRITICAL_STREAM,
                "control or QPACK stream was closed",
            )),
        }
    }
}

fn creation_error(description: &'static str) -> ConnectionError {
    ConnectionError::new(ErrorCode::STREAM_CREATION_ERROR, description)
}
