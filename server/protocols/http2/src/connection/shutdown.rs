//! GOAWAY (RFC 9113 6.8): how a connection ends without losing requests.
//!
//! Called by the task that owns the session. Invariant: requests up to the announced stream are served,
//! later ones are ignored, and the client knows that it may send them again.

use super::{Connection, Phase};
use crate::error::ErrorCode;
use crate::frame::{MAX_STREAM_ID, write_goaway, write_ping};

/// The PING that follows the first GOAWAY.
const SHUTDOWN_PING: [u8; 8] = *b"shutdown";

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shutdown {
    No,
    /// The client may still open streams until it has read the GOAWAY.
    Announced,
    /// Later streams are ignored.
    Final,
}

impl Connection {
    /// Announces the end: open streams, and those that are on their way, are served.
    pub fn go_away_gracefully(&mut self) {
        if self.shutdown == Shutdown::No && self.error().is_none() {
            self.shutdown = Shutdown::Announced;
            let buffer = self.output.buffer();
            write_goaway(buffer, MAX_STREAM_ID, ErrorCode::NO_ERROR, "");
            write_ping(buffer, SHUTDOWN_PING, false);
        }
    }

    /// Announces that no further stream is served. Open streams are served.
    pub fn go_away(&mut self, code: ErrorCode) {
        if self.shutdown != Shutdown::Final && self.error().is_none() {
            self.shutdown = Shutdown::Final;
            write_goaway(self.output.buffer(), self.last_id, code, "");
        }
    }

    /// Whether the connection accepts no further streams, has no open one and nothing to write.
    pub fn is_over(&self) -> bool {
        self.is_leaving() && self.streams.len() == 0 && self.output.len() == 0
    }

    /// Whether GOAWAY was sent with the last stream that is served.
    pub fn is_leaving(&self) -> bool {
        self.shutdown == Shutdown::Final || matches!(self.phase, Phase::Failed(_))
    }

    /// Sends a PING, whose response is [`crate::Event::PingAck`].
    pub fn send_ping(&mut self, opaque: [u8; 8]) {
        if self.error().is_none() {
            write_ping(self.output.buffer(), opaque, false);
        }
    }

    pub(super) fn ignores_new_streams(&self) -> bool {
        self.shutdown == Shutdown::Final
    }

    /// Whether the PING was that of [`Self::go_away_gracefully`]: the client has read its GOAWAY.
    pub(super) fn receive_shutdown_ping_ack(&mut self, opaque: [u8; 8]) -> bool {
        let is_own = self.shutdown == Shutdown::Announced && opaque == SHUTDOWN_PING;
        if is_own {
            self.go_away(ErrorCode::NO_ERROR);
        }
        is_own
    }
}
