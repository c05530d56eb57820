//! [`ReceivedLanes`]: what a connection received, whatever its protocol.
//!
//! Filled by `http1`, `http2`, `http3`, `fastcgi` and `redis`; acted on by the connection.

use crate::failures::Failure;

/// The bytes, received or to be sent, are not valid in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The lanes of a connection that received something.
#[derive(Debug, Default)]
pub(crate) struct ReceivedLanes {
    /// Lanes whose response is complete.
    pub(crate) complete: Vec<usize>,
    /// Lanes whose request the server refused without processing it.
    pub(crate) refused: Vec<usize>,
    /// Lanes whose response failed without the connection.
    pub(crate) failed: Vec<(usize, Failure)>,
    /// The protocol has closed the connection.
    pub(crate) is_over: bool,
}

impl ReceivedLanes {
    pub(crate) fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.refused.is_empty() && self.failed.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.complete.clear();
        self.refused.clear();
        self.failed.clear();
        self.is_over = false;
    }
}
