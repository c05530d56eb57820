//! [`Counters`]: counts of connections, responses and refusals.

use outboard_admin_api::status::{ReasonCount, Tls};
use outboard_log::Reason;
use outboard_tls::SessionFacts;

/// Counts since the start.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Requests with a response.
    pub requests: u64,
    /// Body bytes sent.
    pub body_bytes: u64,
    /// Accepted connections.
    pub connections: u64,
    /// TLS handshakes.
    pub tls: Tls,
    /// Responses by status class; index 0: broken before a status was sent.
    pub by_class: [u64; 10],
    by_reason: Vec<u64>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            requests: 0,
            body_bytes: 0,
            connections: 0,
            tls: Tls::default(),
            by_class: [0; 10],
            by_reason: vec![0; Reason::ALL.len()],
        }
    }
}

impl Counters {
    pub(crate) fn responded(&mut self, status: u16, body_bytes: u64) {
        self.requests += 1;
        self.body_bytes += body_bytes;
        self.by_class[usize::from(status / 100).min(9)] += 1;
    }

    pub(crate) fn established(&mut self, facts: &SessionFacts) {
        let Tls { full_1_2, resumed_1_2, full_1_3, resumed_1_3, .. } = &mut self.tls;
        let count = match (facts.protocol, facts.is_resumed) {
            ("TLSv1.3", false) => full_1_3,
            ("TLSv1.3", true) => resumed_1_3,
            (_, false) => full_1_2,
            (_, true) => resumed_1_2,
        };
        *count += 1;
    }

    pub(crate) fn refused(&mut self, reason: Reason) {
        self.by_reason[reason.index()] += 1;
    }

    /// Refusals by reason, without those that have not occurred.
    pub fn reasons(&self) -> Vec<ReasonCount> {
        let counts = Reason::ALL.iter().zip(&self.by_reason).filter(|(_, count)| **count > 0);
        counts
            .map(|(reason, count)| ReasonCount {
                reason: reason.code().to_owned(),
                status: reason.status(),
                count: *count,
            })
            .collect()
    }
}
