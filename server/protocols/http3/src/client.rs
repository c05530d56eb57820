//! The client's side of a connection without I/O (RFC 9114).
//!
//! Called by the owner of the QUIC connection with the bytes of each stream that the server sends on, in
//! order; it reports events. Nothing is pushed, and the server's encoder has no dynamic table.
//! Invariants: a response has one final head, and ends with one of [`ClientEvent::End`] and
//! [`ClientEvent::StreamError`]; what a server can cause without responses is bounded.

mod request;
mod response_stream;
mod server_streams;
mod shared;
#[cfg(test)]
mod tests;

pub use request::{RequestLine, write_request};

use crate::error::{ConnectionError, ErrorCode, StreamError};
use crate::response::ResponseHead;
use crate::settings::Settings;
use crate::stream_type;
use crate::varint::write_varint;
use response_stream::{Progress, ResponseStream};
use server_streams::ServerStreams;
use shared::Shared;
use std::collections::HashMap;
use std::ops::Range;

/// The limits of a connection with a server.
#[derive(Debug, Clone, Copy)]
pub struct ClientConfig {
    /// The largest field section, encoded and decoded (RFC 9114 4.2.2).
    pub field_section_bytes_max: usize,
    /// How many bytes of interim responses, unknown and control frames are accepted between two
    /// responses.
    pub skipped_bytes_max: u64,
    /// How many streams of unknown types are accepted between two responses.
    pub unknown_streams_max: u64,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            field_section_bytes_max: 65_536,
            skipped_bytes_max: 65_536,
            unknown_streams_max: 100,
        }
    }
}

/// What the bytes of a stream mean.
#[derive(Debug)]
pub enum ClientEvent<'a> {
    /// The final head of a response.
    Head {
        /// The stream of its request.
        stream_id: u64,
        /// Its status and fields.
        head: &'a ResponseHead,
    },
    /// A part of the body.
    Data {
        /// The stream of the request.
        stream_id: u64,
        /// Where it is in the bytes that were passed to [`ClientConnection::receive`].
        range: Range<usize>,
    },
    /// A response is complete.
    End {
        /// The stream of its request.
        stream_id: u64,
    },
    /// A response ends with an error. The caller stops reading with its code.
    StreamError {
        /// The stream of its request.
        stream_id: u64,
        /// The reason.
        error: StreamError,
    },
    /// The server's settings.
    Settings(Settings),
    /// The server does not process requests from this stream on, and accepts no new ones
    /// (RFC 9114 5.2).
    GoAway {
        /// The first stream that is not processed.
        stream_id: u64,
    },
    /// A stream of an unknown type. The caller stops reading it with
    /// [`ErrorCode::STREAM_CREATION_ERROR`], and does not pass on further bytes.
    UnknownStream {
        /// The stream.
        stream_id: u64,
    },
}

/// A connection with a server.
#[derive(Debug)]
pub struct ClientConnection {
    shared: Shared,
    responses: HashMap<u64, ResponseStream>,
    streams: ServerStreams,
}

impl ClientConnection {
    /// A connection at its start.
    pub fn new(config: ClientConfig) -> Self {
        Self {
            shared: Shared::new(config),
            responses: HashMap::new(),
            streams: ServerStreams::default(),
        }
    }

    /// What the control stream of this side begins with: its type and SETTINGS (RFC 9114 6.2.1).
    pub fn write_control_stream_start(&self, out: &mut Vec<u8>) {
        let bytes_max = self.shared.config.field_section_bytes_max as u64;
        write_varint(out, stream_type::CONTROL);
        Settings { max_field_section_size: Some(bytes_max), ..Settings::DEFAULT }.write(out);
    }

    /// A request is sent on a stream, whose response has no body if the method is HEAD.
    pub fn expect_response(&mut self, stream_id: u64, is_head: bool) {
        self.responses.insert(stream_id, ResponseStream::new(stream_id, is_head));
    }

    /// Reads the next bytes of a stream; `fin` is its end. Bytes of a request that is forgotten have no
    /// meaning.
    ///
    /// # Errors
    /// The connection must be closed with the error's code.
    pub fn receive(
        &mut self,
        stream_id: u64,
        bytes: &[u8],
        fin: bool,
        mut on_event: impl FnMut(ClientEvent<'_>),
    ) -> Result<(), ConnectionError> {
        match stream_id & 3 {
            0 => {
                let Some(stream) = self.responses.get_mut(&stream_id) else { return Ok(()) };
                let progress = stream.receive(bytes, fin, &mut self.shared, &mut on_event)?;
                if progress == Progress::Closed {
                    self.responses.remove(&stream_id);
                }
                Ok(())
            }
            3 => self.streams.receive(stream_id, bytes, fin, &mut self.shared, &mut on_event),
            _ => Err(ConnectionError::new(
                ErrorCode::STREAM_CREATION_ERROR,
                "stream is not one of a server",
            )),
        }
    }

    /// Forgets a stream that the server has reset, or that the caller has stopped reading.
    ///
    /// # Errors
    /// The connection cannot do without this stream.
    pub fn close_stream(&mut self, stream_id: u64) -> Result<(), ConnectionError> {
        self.responses.remove(&stream_id);
        self.streams.close(stream_id)
    }

    /// How many responses are not complete.
    pub fn open_requests(&self) -> usize {
        self.responses.len()
    }
}
