//! The server's side of a connection without I/O (RFC 9114).
//!
//! Called by the owner of the QUIC connection with the bytes of each stream that the client opened, in
//! order; it reports events and appends to buffers what is to be sent. Invariants: a request has one
//! head, and ends with one of [`Event::End`], a head that is the end, and [`Event::StreamError`]; what a
//! client can cause without requests is bounded.

mod config;
mod control_stream;
mod event;
mod request_stream;
mod shared;
#[cfg(test)]
mod tests;
mod unidirectional_stream;

pub use config::Config;
pub use event::Event;

use crate::error::{ConnectionError, ErrorCode, StreamError};
use crate::frame::{frame_type, write_frame_head};
use crate::stream_type;
use crate::varint::write_varint;
use outboard_header_compression::qpack::{Encoder, SectionWriter};
use request_stream::{Progress, RequestStream};
use shared::Shared;
use std::collections::HashMap;
use unidirectional_stream::UnidirectionalStreams;

/// How much of the bytes was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Received {
    /// Everything.
    All,
    /// The stream waits for the QPACK encoder stream. The caller passes on the bytes after `consumed`,
    /// even if there are none, and the end of the stream, when [`Event::Unblocked`] is reported.
    Blocked {
        /// How many bytes were read.
        consumed: usize,
    },
}

/// A connection with a client.
#[derive(Debug)]
pub struct Connection {
    shared: Shared,
    encoder: Encoder,
    requests: HashMap<u64, RequestStream>,
    unidirectional: UnidirectionalStreams,
    /// The first request that has not begun.
    next_request: u64,
    /// The identifier of the GOAWAY that was sent.
    goaway: Option<u64>,
    is_decoder_stream_open: bool,
}

impl Connection {
    /// A connection at its start.
    pub fn new(config: Config) -> Self {
        Self {
            shared: Shared::new(config),
            encoder: Encoder::new(),
            requests: HashMap::new(),
            unidirectional: UnidirectionalStreams::default(),
            next_request: 0,
            goaway: None,
            is_decoder_stream_open: false,
        }
    }

    /// Reads the next bytes of a stream of the client; `fin` is its end.
    ///
    /// # Errors
    /// The connection must be closed with the error's code.
    pub fn receive(
        &mut self,
        stream_id: u64,
        bytes: &[u8],
        fin: bool,
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<Received, ConnectionError> {
        match stream_id & 3 {
            0 => self.receive_request(stream_id, bytes, fin, &mut on_event),
            2 => {
                let (streams, shared) = (&mut self.unidirectional, &mut self.shared);
                streams.receive(stream_id, bytes, fin, shared, &mut self.encoder, &mut on_event)?;
                Ok(Received::All)
            }
            _ => Err(ConnectionError::new(
                ErrorCode::STREAM_CREATION_ERROR,
                "stream is not one of a client",
            )),
        }
    }

    fn receive_request(
        &mut self,
        stream_id: u64,
        bytes: &[u8],
        fin: bool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Received, ConnectionError> {
        if self.goaway.is_some_and(|goaway| stream_id >= goaway) {
            on_event(Event::StreamError { stream_id, error: StreamError::Refused });
            self.shared.decoder.cancel_stream(stream_id);
            return Ok(Received::All);
        }
        self.next_request = self.next_request.max(stream_id + 4);
        let stream =
            self.requests.entry(stream_id).or_insert_with(|| RequestStream::new(stream_id));
        match stream.receive(bytes, fin, &mut self.shared, on_event)? {
            Progress::Open => Ok(Received::All),
            Progress::Blocked { consumed } => Ok(Received::Blocked { consumed }),
            Progress::Closed => {
                self.requests.remove(&stream_id);
                Ok(Received::All)
            }
        }
    }

    /// Forgets a stream that the client has reset, or that the caller has stopped reading.
    ///
    /// # Errors
    /// The connection cannot do without this stream.
    pub fn close_stream(&mut self, stream_id: u64) -> Result<(), ConnectionError> {
        if self.requests.remove(&stream_id).is_some() {
            self.shared.decoder.cancel_stream(stream_id);
        }
        self.unidirectional.close(stream_id)
    }

    /// How many requests are not complete.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// What the control stream of this side begins with: its type and SETTINGS (RFC 9114 6.2.1).
    pub fn write_control_stream_start(&self, out: &mut Vec<u8>) {
        write_varint(out, stream_type::CONTROL);
        self.shared.config.settings().write(out);
    }

    /// What is to be sent on the QPACK decoder stream of this side, with its type at first.
    ///
    /// Nothing is ever sent if the dynamic table has no capacity; the stream need not be opened then.
    pub fn write_decoder_stream(&mut self, out: &mut Vec<u8>) {
        let instructions = self.shared.decoder.instructions();
        if instructions.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_decoder_stream_open, true) {
            write_varint(out, stream_type::QPACK_DECODER);
        }
        out.append(instructions);
    }

    /// Writes a HEADERS frame with the fields that `write` adds: a head, an interim head or trailers.
    pub fn write_fields(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut SectionWriter<'_>)) {
        write_varint(out, frame_type::HEADERS);
        // Enough for most sections: a length of two bytes.
        const LENGTH_BYTES: usize = 2;
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        write(&mut self.encoder.begin(out));
        let len = out.len() - start - LENGTH_BYTES;
        match u16::try_from(len) {
            Ok(len) if len < 0x4000 => {
                out[start..start + LENGTH_BYTES].copy_from_slice(&(len | 0x4000).to_be_bytes());
            }
            _ => {
                let mut length = Vec::new();
                write_varint(&mut length, len as u64);
                out.splice(start..start + LENGTH_BYTES, length);
            }
        }
    }

    /// Writes the head of a DATA frame, which `len` bytes of a body follow.
    pub fn write_data_head(out: &mut Vec<u8>, len: u64) {
        write_frame_head(out, frame_type::DATA, len);
    }

    /// Writes GOAWAY for the control stream: requests that have not begun are refused (RFC 9114 5.2).
    pub fn write_goaway(&mut self, out: &mut Vec<u8>) {
        let stream_id = self.goaway.unwrap_or(self.next_request).min(self.next_request);
        self.goaway = Some(stream_id);
        let mut payload = Vec::new();
        write_varint(&mut payload, stream_id);
        write_frame_head(out, frame_type::GOAWAY, payload.len() as u64);
        out.extend_from_slice(&payload);
    }
}
