//! The client's side of a connection without I/O (RFC 9114).
//!
//! Called by the owner of the QUIC connection with the bytes of each stream that the server sends on, in
//! order; it reports events. Nothing is pushed, and the server's encoder has no dynamic table.
//! Invariants: a response has one final head, and ends with one of [`ClientEvent::End`] and
//! [`ClientEvent::StreamError`]; what a server can cause without responses is bounded.

mod config;
mod event;
mod request;
mod response_stream;
mod server_streams;
mod shared;
#[cfg(test)]
mod tests;

pub use config::ClientConfig;
pub use event::ClientEvent;
pub use request::{RequestLine, write_request};

use crate::error::{ConnectionError, ErrorCode};
use crate::settings::Settings;
use crate::stream_type;
use crate::varint::write_varint;
use response_stream::{Progress, ResponseStream};
use server_streams::ServerStreams;
use shared::Shared;
use std::collections::HashMap;

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
