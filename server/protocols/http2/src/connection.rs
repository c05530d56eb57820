//! [`Connection`]: the server's end of an HTTP/2 connection, without I/O.
//!
//! Called by the task that owns the session, and by the task of each stream. Invariants: the output is
//! a sequence of complete frames; memory is bounded by the settings and, for acknowledgments, by the
//! caller, which does not read while the connection is congested; after an error no stream is open.
//!
//! | file | owns |
//! |---|---|
//! | `receive` | input, frames of the connection |
//! | `receive_head`, `receive_data` | HEADERS with CONTINUATION, DATA |
//! | `stream_frames` | the other frames of streams |
//! | `send`, `send_buffers` | responses, and their data that waits |
//! | `interest` | what tasks of streams wait for |
//! | `output` | what is written next |
//! | `shutdown` | GOAWAY |

mod interest;
mod output;
mod receive;
mod receive_data;
mod receive_head;
mod send;
mod send_buffers;
mod shutdown;
mod stream_frames;

use crate::error::{ConnectionError, ErrorCode};
use crate::flow_control::{DEFAULT_WINDOW, ReceiveWindow, SendWindow};
use crate::frame::{write_goaway, write_rst_stream, write_window_update};
use crate::meter::{Metered, Meters};
use crate::output::Output;
use crate::scheduler::Scheduler;
use crate::settings::{PeerSettings, Settings};
use crate::stream::{Sending, Stream, StreamKey};
use crate::streams::Streams;
use outboard_header_compression::hpack;
use outboard_http_semantics::{Priority, RequestHead};
use receive_data::DataFrame;
use receive_head::FieldBlock;
use send_buffers::SendBuffers;
use shutdown::Shutdown;

pub use receive::MAX_INPUT_BYTES;
pub use send::SendState;

/// What the connection expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preface,
    Settings,
    Frames,
    Failed(ConnectionError),
}

/// The server's end of a connection.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    peer: PeerSettings,
    phase: Phase,
    shutdown: Shutdown,
    now_ms: u64,
    streams: Streams,
    /// The highest stream that the client has opened.
    last_id: u32,
    scheduler: Scheduler,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    output: Output,
    decoder: hpack::Decoder,
    encoder: hpack::Encoder,
    /// The head or the trailers of the last block.
    head: RequestHead,
    block: FieldBlock,
    data: Option<DataFrame>,
    meters: Meters,
    send_buffers: SendBuffers,
    /// Streams that can send again.
    writable: Vec<StreamKey>,
    /// Of streams that the client has not opened yet (RFC 9218 7.1).
    early_priorities: Vec<(u32, Priority)>,
}

impl Connection {
    /// A connection whose client has sent nothing; the output has the SETTINGS.
    pub fn new(settings: Settings, now_ms: u64) -> Self {
        let window_bytes = settings.connection_window_bytes.max(DEFAULT_WINDOW);
        let mut output = Output::default();
        settings.write(output.buffer());
        if window_bytes > DEFAULT_WINDOW {
            write_window_update(output.buffer(), 0, window_bytes - DEFAULT_WINDOW);
        }
        let send_buffers =
            SendBuffers::new(settings.stream_send_buffer_bytes, settings.send_buffer_bytes);
        Self {
            settings,
            peer: PeerSettings::default(),
            phase: Phase::Preface,
            shutdown: Shutdown::No,
            now_ms,
            streams: Streams::new(),
            last_id: 0,
            scheduler: Scheduler::default(),
            send_window: SendWindow::new(DEFAULT_WINDOW),
            receive_window: ReceiveWindow::new(window_bytes),
            output,
            decoder: hpack::Decoder::new(hpack::DEFAULT_TABLE_BYTES),
            encoder: hpack::Encoder::new(),
            head: RequestHead::new(),
            block: FieldBlock::default(),
            data: None,
            meters: Meters::new(now_ms),
            send_buffers,
            writable: Vec::new(),
            early_priorities: Vec::new(),
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
        match self.phase {
            Phase::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Gives back memory that an idle connection does not need.
    pub fn shrink(&mut self) {
        if self.streams.len() == 0 {
            self.streams.shrink();
            self.scheduler.clear();
            self.head = RequestHead::new();
            self.writable = Vec::new();
            self.send_buffers.shrink();
            self.output.shrink();
            self.block.shrink();
        }
    }

    /// The bytes of the buffers, without the tables of the field compression.
    pub fn buffer_bytes(&self) -> usize {
        self.output.capacity_bytes()
            + self.send_buffers.bytes()
            + self.head.capacity_bytes()
            + self.block.capacity_bytes()
    }

    /// Ends the connection: no stream is open any more, and the client receives GOAWAY.
    fn fail(&mut self, error: ConnectionError) {
        if matches!(self.phase, Phase::Failed(_)) {
            return;
        }
        self.phase = Phase::Failed(error);
        while let Some(last) = self.streams.len().checked_sub(1)
            && let Some(key) = self.streams.at(last)
        {
            self.close(key, true);
        }
        self.data = None;
        self.block = FieldBlock::default();
        write_goaway(self.output.buffer(), self.last_id, error.code(), error.reason());
    }

    /// Removes a stream with everything that it has.
    fn close(&mut self, key: StreamKey, by_reset: bool) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        self.scheduler.remove(key, stream);
        self.send_buffers.take_back(stream);
        stream.trailers = None;
        if std::mem::take(&mut stream.is_waiting) {
            self.send_buffers.waiting -= 1;
        }
        let unreleased = stream.receive_window.unreleased();
        self.streams.close(key, by_reset);
        if unreleased > 0 {
            self.release_of_connection(unreleased);
        }
    }

    /// Sends RST_STREAM and closes the stream.
    fn reset_stream(&mut self, key: StreamKey, code: ErrorCode) {
        write_rst_stream(self.output.buffer(), key.id, code);
        self.close(key, true);
    }

    /// Sends RST_STREAM because the client has violated the protocol on a stream.
    fn reset_provoked(&mut self, id: u32, code: ErrorCode) -> Result<(), ConnectionError> {
        self.meters.count(Metered::ProvokedReset, self.now_ms)?;
        match self.streams.find(id) {
            Some(key) => self.reset_stream(key, code),
            None => {
                write_rst_stream(self.output.buffer(), id, code);
                self.streams.note_refused(id);
            }
        }
        Ok(())
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

    /// Announces received bytes to the client again, once they are half of a window.
    fn release_of_connection(&mut self, bytes: u32) {
        if let Some(increment) = self.receive_window.release(bytes)
            && !matches!(self.phase, Phase::Failed(_))
        {
            write_window_update(self.output.buffer(), 0, increment);
        }
    }

    fn stream_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key)
    }
}
