//! The counters of a client, for status pages and metrics.
//!
//! Updated by the client, read by its owner.

use crate::error::Kind;

/// Counts since the client was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls, successful or not.
    pub requests: u64,
    /// Connections established.
    pub connections: u64,
    /// Requests over an existing connection.
    pub reused: u64,
    /// Redirects followed.
    pub redirects: u64,
    /// Retries after a connection failed.
    pub retries: u64,
    failures: [u64; Kind::ALL.len()],
}

/// The present connections and requests of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Idle connections.
    pub idle: usize,
    /// Requests whose response is not complete.
    pub under_way: usize,
    /// Those of them that count as a response ([`crate::Response::count_as_response`]).
    pub responses: usize,
}

impl Counters {
    pub(crate) fn failed(&mut self, kind: Kind) {
        self.failures[kind as usize] += 1;
    }

    /// Calls that failed, by kind.
    pub fn failures(&self) -> impl Iterator<Item = (Kind, u64)> + use<> {
        Kind::ALL.into_iter().zip(self.failures)
    }
}
