//! [`Failure`]: why a part of a page is missing.

use outboard_log::Reason;

/// The failure of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// For the client, when the page fails with the part.
    pub(super) reason: Reason,
    /// For the log.
    pub(super) text: String,
}

impl Failure {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    /// There is no room for the part.
    pub(super) fn no_memory() -> Self {
        Self::new(Reason::MemoryFull, "limits.memory has no room for the part")
    }
}
