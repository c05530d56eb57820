//! What a client counts, for status pages and metrics.

use crate::error::Kind;

/// Counts since the client was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls, whatever came of them.
    pub requests: u64,
    /// Connections made.
    pub connections: u64,
    /// Requests that went over a connection that was there already.
    pub reused: u64,
    /// Redirects followed.
    pub redirects: u64,
    /// Further attempts after a connection failed.
    pub retries: u64,
    failures: [u64; Kind::ALL.len()],
}

/// What a client has open now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections that wait for a request.
    pub idle: usize,
    /// Requests whose answer has not come to its end.
    pub under_way: usize,
    /// Those of them that count for a response, and not for a request any more.
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
