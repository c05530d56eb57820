//! Why a slice must not be compared with another.
//!
//! Asked by [`crate::slice`] after every slice (what may pass is taken again, a bounded number of
//! times) and by [`crate::comparison`] of whole series: what remains is refused a ranking, with
//! the reason. Pure; the numbers are in the slice.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::slice::{Series, Slice};

/// The share of its one thread from which on the generator counts as saturated.
const BUSY_CLIENT: f64 = 0.85;

/// The share of what the generator leaves of the machine, from which on a stack uses all of it:
/// then it is the stack that limits the rate, however busy the generator is.
const BUSY_STACK: f64 = 0.90;

/// The share of the machine that its hypervisor may give to others.
const STOLEN: f64 = 0.05;

/// The share of the time in which everything may wait for memory.
const STALLED: f64 = 0.05;

/// The share of requests that may fail: failures are often quicker than answers.
const FAILED: f64 = 0.01;

/// How far the requests in flight may be from the number of connections.
const LITTLE: f64 = 0.05;

/// A reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// The generator's thread was busy all the time while the stack was not: the rate is the
    /// generator's, and answers have waited for it.
    ClientSaturated {
        /// Share of the thread's time.
        busy: f64,
    },
    /// There were no ports left to connect from.
    PortsExhausted {
        /// Connections that could not be made.
        connections: u64,
    },
    /// Answers had other bytes than the one that the stacks were compared by.
    BodiesDiffer {
        /// How many.
        answers: u64,
    },
    /// Too many requests failed.
    Failing {
        /// How many.
        failed: u64,
        /// Of so many.
        sent: u64,
    },
    /// Rate times latency is not the number of requests in flight (Little's law), so one of the
    /// three was measured wrongly.
    Little {
        /// Rate times mean latency.
        in_flight: f64,
        /// Connections, each with one request in flight.
        connections: usize,
    },
    /// Others used the machine, or its hypervisor gave it to them, or memory was short.
    Noisy {
        /// The share taken.
        taken: f64,
        /// By whom.
        by: String,
    },
}

impl Refusal {
    /// What speaks against this slice, the gravest first.
    pub fn of(slice: &Slice) -> Option<Self> {
        ports(slice)
            .or_else(|| bodies(slice))
            .or_else(|| failing(slice))
            .or_else(|| little(slice))
            .or_else(|| noisy(slice))
            .or_else(|| saturated(slice))
    }

    /// Whether others had the machine, beside whatever else speaks against the slice.
    pub fn of_noise(slice: &Slice) -> Option<Self> {
        noisy(slice)
    }

    /// What speaks against a whole series: a fault in any slice, or anything else in more than a
    /// quarter of them.
    pub fn of_series(series: &Series) -> Option<Self> {
        let found: Vec<Self> = series.slices.iter().filter_map(Self::of).collect();
        let fault = |refusal: &&Self| {
            matches!(refusal, Self::PortsExhausted { .. } | Self::BodiesDiffer { .. })
        };
        if let Some(fault) = found.iter().find(fault) {
            return Some(fault.clone());
        }
        let often = |refusal: &&Self| {
            let same = found.iter().filter(|other| other.is_like(refusal)).count();
            4 * same > series.slices.len()
        };
        found.iter().find(often).cloned()
    }

    /// Whether it may be gone in the next slice.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Noisy { .. } | Self::Little { .. } | Self::PortsExhausted { .. })
    }

    /// Whether it forbids to compare this metric. What a request costs the server does not depend
    /// on how fast the generator asks.
    pub fn forbids(&self, metric: Metric) -> bool {
        !(matches!(self, Self::ClientSaturated { .. }) && metric == Metric::Cpu)
    }

    /// In what the stack is not ranked, to follow "is not ranked".
    pub fn scope(&self) -> &'static str {
        if self.forbids(Metric::Cpu) { "" } else { " by rate and latency" }
    }

    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

fn ports(slice: &Slice) -> Option<Refusal> {
    let connections = slice.load.failures.ports;
    (connections > 0).then_some(Refusal::PortsExhausted { connections })
}

fn bodies(slice: &Slice) -> Option<Refusal> {
    let answers = slice.load.failures.length + slice.load.failures.body;
    (answers > 0).then_some(Refusal::BodiesDiffer { answers })
}

fn failing(slice: &Slice) -> Option<Refusal> {
    let failed = slice.load.failures.total();
    let sent = slice.load.answers + slice.load.failures.unanswered();
    (failed as f64 > FAILED * sent as f64).then_some(Refusal::Failing { failed, sent })
}

/// More than the connections can never be in flight. Less is plain only when no answer took so
/// long that it reached over the end, where connections fall idle one by one.
fn little(slice: &Slice) -> Option<Refusal> {
    let load = &slice.load;
    if load.offered.is_some() {
        // By a schedule, connections are idle as often as they may be.
        return None;
    }
    let mean_us = load.latency.mean_us.filter(|_| load.connections > 0 && load.seconds > 0.0)?;
    let in_flight = load.rate() * mean_us / 1e6;
    let share = in_flight / load.connections as f64;
    let tail = load.latency.max_us / 1e6 / load.seconds;
    // The generator's own work between an answer and the next request is in no latency.
    let own = load.client_us as f64 / 1e6 / load.seconds;
    let too_few = tail < LITTLE && share < 1.0 - LITTLE - own;
    let violated = share > 1.0 + LITTLE || too_few;
    violated.then_some(Refusal::Little { in_flight, connections: load.connections })
}

fn noisy(slice: &Slice) -> Option<Refusal> {
    let reasons = [
        (slice.stolen, STOLEN.max(slice.noise_limit / 2.0), "the hypervisor"),
        (slice.stalled, STALLED, "waiting for memory"),
        (slice.noise, slice.noise_limit, "other processes"),
    ];
    let over = reasons.into_iter().find(|(taken, limit, _)| taken > limit);
    over.map(|(taken, _, by)| Refusal::Noisy { taken, by: by.into() })
}

fn saturated(slice: &Slice) -> Option<Refusal> {
    let load = &slice.load;
    let busy = load.client_us as f64 / 1e6 / load.seconds.max(1e-9);
    let left_us = slice.machine_us.saturating_sub(load.client_us);
    let stack_limits = (slice.cpu_us + slice.beside_us) as f64 >= BUSY_STACK * left_us as f64;
    (busy >= BUSY_CLIENT && !stack_limits).then_some(Refusal::ClientSaturated { busy })
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientSaturated { busy } => write!(
                f,
                "the load generator was saturated (its thread was busy {:.0} % of the time) and \
                 the stack was not",
                busy * 100.0
            ),
            Self::PortsExhausted { connections } => write!(
                f,
                "no port was left to connect from, {connections} times: widen \
                 net.ipv4.ip_local_port_range or use keep-alive"
            ),
            Self::BodiesDiffer { answers } => {
                write!(f, "{answers} answers had other bytes than the one compared before")
            }
            Self::Failing { failed, sent } => write!(f, "{failed} of {sent} requests failed"),
            Self::Little { in_flight, connections } => write!(
                f,
                "rate times latency gives {in_flight:.1} requests in flight where there were \
                 {connections} connections (Little's law)"
            ),
            Self::Noisy { taken, by } => {
                write!(f, "{:.0} % of the machine went to {by}", taken * 100.0)
            }
        }
    }
}

#[cfg(test)]
mod tests;
