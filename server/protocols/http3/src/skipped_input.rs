//! The account of input that a connection skips: unknown frames and streams (RFC 9114 9).
//!
//! Called by every stream of a connection, at either end. Invariant: what is skipped between two requests, or two
//! responses, is bounded.

use crate::error::{ConnectionError, ErrorCode};

/// See the module.
#[derive(Debug)]
pub(crate) struct SkippedInput {
    bytes: u64,
    streams: u64,
    bytes_max: u64,
    streams_max: u64,
}

impl SkippedInput {
    pub(crate) fn new(bytes_max: u64, streams_max: u64) -> Self {
        Self { bytes: 0, streams: 0, bytes_max, streams_max }
    }

    /// Counts bytes that are not part of a message.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), ConnectionError> {
        self.bytes = self.bytes.saturating_add(bytes);
        within(self.bytes, self.bytes_max, "too many unknown frames")
    }

    /// Counts a stream of an unknown type.
    pub(crate) fn add_stream(&mut self) -> Result<(), ConnectionError> {
        self.streams += 1;
        within(self.streams, self.streams_max, "too many unknown streams")
    }

    /// A message began: the account starts again.
    pub(crate) fn restart(&mut self) {
        (self.bytes, self.streams) = (0, 0);
    }
}

fn within(count: u64, max: u64, what: &'static str) -> Result<(), ConnectionError> {
    if count > max { Err(ConnectionError::new(ErrorCode::EXCESSIVE_LOAD, what)) } else { Ok(()) }
}
