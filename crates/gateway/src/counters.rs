//! What the gateway counts, for `outboard status` and `/metrics`.

use outboard_admin_api::status::ReasonCount;
use outboard_log::Reason;

/// Counts since start.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    /// Answered requests.
    pub requests: u64,
    /// Body bytes sent.
    pub body_bytes: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Answers by hundreds of their status; index 0 are those broken without one.
    pub by_class: [u64; 10],
    by_reason: Vec<u64>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            requests: 0,
            body_bytes: 0,
            connections: 0,
            by_class: [0; 10],
            by_reason: vec![0; Reason::ALL.len()],
        }
    }
}

impl Counters {
    pub(crate) fn answered(&mut self, status: u16, body_bytes: u64) {
        self.requests += 1;
        self.body_bytes += body_bytes;
        self.by_class[usize::from(status / 100).min(9)] += 1;
    }

    pub(crate) fn refused(&mut self, reason: Reason) {
        self.by_reason[reason.index()] += 1;
    }

    /// The reasons that have occurred.
    pub(crate) fn reasons(&self) -> Vec<ReasonCount> {
        let counts = Reason::ALL.iter().zip(&self.by_reason);
        counts
            .filter(|(_, count)| **count > 0)
            .map(|(reason, count)| ReasonCount {
                reason: reason.code().to_owned(),
                status: reason.status(),
                count: *count,
            })
            .collect()
    }
}
