//! [`Settings`]: what the owner of clients configures.
//!
//! Given to a [`crate::ClientGroup`], and the same as long as the group lives.

use std::path::PathBuf;

/// The limits of the clients of a group, all together, and their trusted certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Concurrent requests to one origin.
    pub requests_per_host: usize,
    /// Responses of one origin that count apart from these ([`crate::Response::count_as_response`]).
    pub responses_per_host: usize,
    /// Requests to one origin that may wait for another to end.
    pub waiting_per_host: usize,
    /// The longest wait of such a request.
    pub wait_ms: u64,
    /// Connections to all origins.
    pub connections: usize,
    /// Idle connections to one origin.
    pub idle_per_host: usize,
    /// How long an idle connection stays open.
    pub idle_timeout_ms: u64,
    /// Certificate authorities in addition to the system's, as PEM.
    pub ca_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requests_per_host: 1024,
            responses_per_host: 4096,
            waiting_per_host: 1024,
            wait_ms: 1_000,
            connections: 16_384,
            idle_per_host: 512,
            idle_timeout_ms: 30_000,
            ca_file: None,
        }
    }
}
