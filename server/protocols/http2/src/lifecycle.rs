//! [`Lifecycle`]: how far a connection is, from its preface (RFC 9113 3.4) to GOAWAY (6.8).
//!
//! Owned by `connection`. Invariants: requests up to the announced stream are served, later ones are ignored, and the
//! client knows that it may send them again; a connection that has failed continues with nothing.

use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{FrameHead, MAX_STREAM_ID, flag, kind, write_goaway, write_ping};

/// The PING that follows the first GOAWAY.
const SHUTDOWN_PING: [u8; 8] = *b"shutdown";

/// What the connection expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preface,
    Settings,
    Frames,
    Failed(ConnectionError),
}

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shutdown {
    No,
    /// The client may still open streams until it has read the GOAWAY.
    Announced,
    /// Later streams are ignored.
    Final,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: Phase,
    shutdown: Shutdown,
    /// The highest stream that the client has opened.
    last_id: u32,
}

impl Lifecycle {
    /// The client has sent nothing.
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Preface, shutdown: Shutdown::No, last_id: 0 }
    }

    /// The error that has ended the connection.
    pub(crate) fn error(&self) -> Option<ConnectionError> {
        match self.phase {
            Phase::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the preface is expected.
    ///
    /// # Errors
    /// The connection has failed.
    pub(crate) fn expects_preface(&self) -> Result<bool, ConnectionError> {
        match self.phase {
            Phase::Frames | Phase::Settings => Ok(false),
            Phase::Preface => Ok(true),
            Phase::Failed(error) => Err(error),
        }
    }

    /// The preface was received.
    pub(crate) fn receive_preface(&mut self) {
        self.phase = Phase::Settings;
    }

    /// A frame was received: the first one is SETTINGS (RFC 9113 3.4).
    pub(crate) fn check_first(&mut self, head: FrameHead) -> Result<(), ConnectionError> {
        if self.phase == Phase::Settings {
            if head.kind != kind::SETTINGS || head.has(flag::ACK) {
                return Err(ConnectionError::SettingsExpected);
            }
            self.phase = Phase::Frames;
        }
        Ok(())
    }

    /// Whether the client has sent its preface and its SETTINGS.
    pub(crate) fn has_begun(&self) -> bool {
        self.phase == Phase::Frames
    }

    /// The connection ends with an error, whose GOAWAY is written; false if it has failed already.
    pub(crate) fn fail(&mut self, error: ConnectionError, out: &mut Vec<u8>) -> bool {
        if self.error().is_some() {
            return false;
        }
        self.phase = Phase::Failed(error);
        write_goaway(out, self.last_id, error.code(), error.reason());
        true
    }

    /// The client opens a stream.
    pub(crate) fn open(&mut self, id: u32) {
        self.last_id = id;
    }

    /// Whether a stream is a new one, whose identifier is higher than all earlier ones (RFC 9113 5.1.1).
    pub(crate) fn is_new(&self, id: u32) -> bool {
        id > self.last_id
    }

    /// RFC 9113 5.1: a stream that was not opened has neither windows nor an end.
    pub(crate) fn check_not_idle(&self, id: u32) -> Result<(), ConnectionError> {
        match id {
            0 => Err(ConnectionError::InvalidStreamId),
            _ if !self.is_new(id) || self.ignores_new_streams() => Ok(()),
            _ => Err(ConnectionError::IdleStream),
        }
    }

    /// Announces the end: open streams, and those that are on their way, are served.
    pub(crate) fn go_away_gracefully(&mut self, out: &mut Vec<u8>) {
        if self.shutdown == Shutdown::No && self.error().is_none() {
            self.shutdown = Shutdown::Announced;
            write_goaway(out, MAX_STREAM_ID, ErrorCode::NO_ERROR, "");
            write_ping(out, SHUTDOWN_PING, false);
        }
    }

    /// Announces that no further stream is served. Open streams are served.
    pub(crate) fn go_away(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        if self.shutdown != Shutdown::Final && self.error().is_none() {
            self.shutdown = Shutdown::Final;
            write_goaway(out, self.last_id, code, "");
        }
    }

    /// Whether the PING was that of [`Self::go_away_gracefully`]: the client has read its GOAWAY.
    pub(crate) fn receive_ping_ack(&mut self, opaque: [u8; 8], out: &mut Vec<u8>) -> bool {
        let is_own = self.shutdown == Shutdown::Announced && opaque == SHUTDOWN_PING;
        if is_own {
            self.go_away(ErrorCode::NO_ERROR, out);
        }
        is_own
    }

    /// Whether GOAWAY was sent with the last stream that is served.
    pub(crate) fn is_leaving(&self) -> bool {
        self.ignores_new_streams() || self.error().is_some()
    }

    /// Whether later streams are ignored.
    pub(crate) fn ignores_new_streams(&self) -> bool {
        self.shutdown == Shutdown::Final
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8) -> FrameHead {
        FrameHead { len: 0, kind, flags, stream_id: 0 }
    }

    #[test]
    fn a_connection_begins_with_preface_and_settings() {
        let mut lifecycle = Lifecycle::new();
        assert_eq!(lifecycle.expects_preface(), Ok(true));
        lifecycle.receive_preface();
        assert_eq!(lifecycle.expects_preface(), Ok(false));
        for early in [frame(kind::HEADERS, 0), frame(kind::SETTINGS, flag::ACK)] {
            assert_eq!(lifecycle.check_first(early), Err(ConnectionError::SettingsExpected));
        }
        assert!(!lifecycle.has_begun());
        assert_eq!(lifecycle.check_first(frame(kind::SETTINGS, 0)), Ok(()));
        assert!(lifecycle.has_begun());
        assert_eq!(lifecycle.check_first(frame(kind::HEADERS, 0)), Ok(()));
    }

    #[test]
    fn a_graceful_end_waits_until_the_client_has_read_it() {
        let (mut lifecycle, mut out) = (Lifecycle::new(), Vec::new());
        lifecycle.open(5);
        lifecycle.go_away_gracefully(&mut out);
        assert!(!lifecycle.is_leaving() && !lifecycle.ignores_new_streams());
        assert!(!lifecycle.receive_ping_ack(*b"anything", &mut out));
        lifecycle.open(7);
        let before = out.len();
        assert!(lifecycle.receive_ping_ack(SHUTDOWN_PING, &mut out));
        let mut expected = Vec::new();
        write_goaway(&mut expected, 7, ErrorCode::NO_ERROR, "");
        assert_eq!(out[before..], expected);
        assert!(lifecycle.is_leaving());
        assert!(!lifecycle.receive_ping_ack(SHUTDOWN_PING, &mut out), "it is that of the client");
    }

    #[test]
    fn frames_of_streams_that_were_not_opened_are_errors() {
        let mut lifecycle = Lifecycle::new();
        lifecycle.open(3);
        assert_eq!(lifecycle.check_not_idle(0), Err(ConnectionError::InvalidStreamId));
        assert_eq!(lifecycle.check_not_idle(1), Ok(()));
        assert_eq!(lifecycle.check_not_idle(5), Err(ConnectionError::IdleStream));
        lifecycle.go_away(ErrorCode::NO_ERROR, &mut Vec::new());
        assert_eq!(lifecycle.check_not_idle(5), Ok(()), "it may have been ignored");
    }

    #[test]
    fn only_the_first_error_is_announced() {
        let (mut lifecycle, mut out) = (Lifecycle::new(), Vec::new());
        assert!(lifecycle.fail(ConnectionError::FrameTooLong, &mut out));
        let written = out.len();
        assert!(written > 0 && !lifecycle.fail(ConnectionError::IdleStream, &mut out));
        lifecycle.go_away(ErrorCode::NO_ERROR, &mut out);
        lifecycle.go_away_gracefully(&mut out);
        assert_eq!(out.len(), written);
        assert_eq!(lifecycle.expects_preface(), Err(ConnectionError::FrameTooLong));
    }
}
