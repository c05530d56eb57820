//! [`Connection`]: the server's end of an HTTP/2 connection, without I/O.
//!
//! Called by the task that owns the session, and by the task of each stream. Invariants: the output is
//! a sequence of complete frames; memory is bounded by the settings and, for acknowledgments, by the
//! caller, which does not read while the connection is congested; after an error no stream is open.
//!
//! What it consists of owns its part of the state: `Lifecycle`, `Streams`, `Sender`, `HeadDecoder`, `DataReader`,
//! `Meters`. Here is what follows from one for the others.
//!
//! | file | owns |
//! |---|---|
//! | `receive` | input, frames of the connection |
//! | `receive_streams`, `receive_data` | frames of streams |
//! | `send` | responses, and the output |

mod receive;
mod receive_data;
mod receive_streams;
mod send;

use crate::data_reader::DataReader;
use crate::early_priorities::EarlyPriorities;
use crate::error::{ConnectionError, ErrorCode};
use crate::flow_control::DEFAULT_WINDOW;
use crate::frame::{write_ping, write_rst_stream, write_window_update};
use crate::head_decoder::HeadDecoder;
use crate::lifecycle::Lifecycle;
use crate::meter::{Metered, Meters};
use crate::sender::Sender;
use crate::settings::{PeerSettings, Settings};
use crate::stream::{Sending, StreamKey};
use crate::streams::Streams;

/// The server's end of a connection.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    peer: PeerSettings,
    lifecycle: Lifecycle,
    now_ms: u64,
    streams: Streams,
    sender: Sender,
    heads: HeadDecoder,
    data: DataReader,
    meters: Meters,
    early_priorities: EarlyPriorities,
}

impl Connection {
    /// A connection whose client has sent nothing; the output has the SETTINGS.
    pub fn new(settings: Settings, now_ms: u64) -> Self {
        let window_bytes = settings.connection_window_bytes.max(DEFAULT_WINDOW);
        let mut sender = Sender::new(&settings);
        settings.write(sender.buffer());
        if window_bytes > DEFAULT_WINDOW {
            write_window_update(sender.buffer(), 0, window_bytes - DEFAULT_WINDOW);
        }
        Self {
            peer: PeerSettings::default(),
            lifecycle: Lifecycle::new(),
            now_ms,
            streams: Streams::new(),
            sender,
            heads: HeadDecoder::new(&settings),
            data: DataReader::new(window_bytes),
            meters: Meters::new(now_ms),
            early_priorities: EarlyPriorities::default(),
            settings,
        }
    }

    /// The number of open streams.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether a stream is open.
    pub fn is_open(&self, stream: StreamKey) -> bool {
        self.streams.get(stream).is_some()
    }

    /// The error that has ended the connection.
    pub fn error(&self) -> Option<ConnectionError> {
        self.lifecycle.error()
    }

    /// Whether the client has sent its preface and its SETTINGS.
    pub fn has_begun(&self) -> bool {
        self.lifecycle.has_begun()
    }

    /// Announces the end: open streams, and those that are on their way, are served.
    pub fn go_away_gracefully(&mut self) {
        self.lifecycle.go_away_gracefully(self.sender.buffer());
    }

    /// Announces that no further stream is served. Open streams are served.
    pub fn go_away(&mut self, code: ErrorCode) {
        self.lifecycle.go_away(code, self.sender.buffer());
    }

    /// Whether the connection accepts no further streams, has no open one and nothing to write.
    pub fn is_over(&self) -> bool {
        self.is_leaving() && self.streams.len() == 0 && self.unsent_bytes() == 0
    }

    /// Whether GOAWAY was sent with the last stream that is served.
    pub fn is_leaving(&self) -> bool {
        self.lifecycle.is_leaving()
    }

    /// Sends a PING, whose response is [`crate::Event::PingAck`].
    pub fn send_ping(&mut self, opaque: [u8; 8]) {
        if self.error().is_none() {
            write_ping(self.sender.buffer(), opaque, false);
        }
    }

    /// Gives back memory that an idle connection does not need.
    pub fn shrink(&mut self) {
        if self.streams.len() == 0 {
            self.streams.shrink();
            self.sender.shrink();
            self.heads.shrink();
        }
    }

    /// The bytes of the buffers, without the tables of the field compression.
    pub fn buffer_bytes(&self) -> usize {
        self.sender.buffer_bytes() + self.heads.buffer_bytes()
    }

    /// Closes a stream with RST_STREAM.
    pub fn reset(&mut self, stream: StreamKey, code: ErrorCode) {
        if self.is_open(stream) {
            self.reset_stream(stream, code);
        }
    }

    /// Allows the client to send as much again as the server has processed.
    pub fn release(&mut self, stream: StreamKey, bytes: usize) {
        // What a closed stream has received was released.
        let Some(state) = self.streams.get_mut(stream) else { return };
        let bytes = bytes.min(state.receive_window.unreleased() as usize) as u32;
        let increment = state.receive_window.release(bytes);
        if let Some(increment) = increment
            && !state.has_received_all
        {
            write_window_update(self.sender.buffer(), stream.id, increment);
        }
        self.release_of_connection(bytes);
    }

    /// Announces received bytes to the client again, once they are half of a window.
    fn release_of_connection(&mut self, bytes: u32) {
        if let Some(increment) = self.data.release(bytes)
            && self.error().is_none()
        {
            write_window_update(self.sender.buffer(), 0, increment);
        }
    }

    /// Ends the connection: no stream is open any more, and the client receives GOAWAY.
    fn fail(&mut self, error: ConnectionError) {
        if !self.lifecycle.fail(error, self.sender.buffer()) {
            return;
        }
        while let Some(last) = self.streams.len().checked_sub(1)
            && let Some(key) = self.streams.at(last)
        {
            self.close(key, true);
        }
        self.data.abandon();
        self.heads.abandon();
    }

    /// Removes a stream with everything that it has.
    fn close(&mut self, key: StreamKey, by_reset: bool) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        self.sender.forget(key, stream);
        let unreleased = stream.receive_window.unreleased();
        self.streams.close(key, by_reset);
        if unreleased > 0 {
            self.release_of_connection(unreleased);
        }
    }

    /// Sends RST_STREAM and closes the stream.
    fn reset_stream(&mut self, key: StreamKey, code: ErrorCode) {
        write_rst_stream(self.sender.buffer(), key.id, code);
        self.close(key, true);
    }

    /// Sends RST_STREAM because the client has violated the protocol on a stream.
    fn reset_provoked(&mut self, id: u32, code: ErrorCode) -> Result<(), ConnectionError> {
        self.meters.count(Metered::ProvokedReset, self.now_ms)?;
        match self.streams.find(id) {
            Some(key) => self.reset_stream(key, code),
            None => {
                write_rst_stream(self.sender.buffer(), id, code);
                self.streams.note_refused(id);
            }
        }
        Ok(())
    }

    /// END_STREAM was received.
    fn finish_receiving(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.has_received_all = true;
        if stream.is_sent() {
            self.close(key, false);
        }
    }

    /// Both sides have ended, or the response is complete before the request is (RFC 9113 8.1).
    fn finish_sending(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.sending = Sending::Ended;
        match (stream.has_received_all, stream.is_tunnel) {
            (true, _) => {
                self.meters.relieve_by_response();
                self.close(key, false);
            }
            (false, false) => self.reset_stream(key, ErrorCode::NO_ERROR),
            (false, true) => {}
        }
    }
}
