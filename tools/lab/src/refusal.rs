//! Why a slice must not be compared.
//!
//! Checked by [`crate::slice`] after every slice, which repeats rounds with temporary reasons a
//! bounded number of times, and by [`crate::comparison`] for whole series, which are not ranked
//! then. Pure functions of the slice.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::load::Failure;
use crate::metric::Metric;
use crate::series::{Series, Slice};

/// From this share of its one thread, the generator counts as saturated.
const BUSY_CLIENT: f64 = 0.85;

/// From this share of what the generator leaves of the machine, a stack counts as using all of it:
/// then the stack limits the rate, however busy the generator is.
const BUSY_STACK: f64 = 0.90;

/// The share of the machine that the hypervisor may take.
const STOLEN: f64 = 0.05;

/// The share of the time in which all runnable tasks may wait for memory.
const STALLED: f64 = 0.05;

/// The share of requests that may fail, since failures are often faster than responses.
const FAILED: f64 = 0.01;

/// The tolerated relative difference between requests in flight and connections.
const LITTLE: f64 = 0.05;

/// A reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// The generator's thread was busy all the time and the stack was not: the rate is the
    /// generator's, and responses have waited for it.
    ClientSaturated {
        /// The busy share of the thread's time.
        busy: f64,
    },
    /// No ports were left to connect from.
    PortsExhausted {
        /// Connections that could not be made.
        connections: u64,
    },
    /// Responses had other bytes than the expected ones.
    BodiesDiffer {
        /// The number of responses.
        responses: u64,
    },
    /// Too many requests failed.
    Failing {
        /// The number of failures.
        failed: u64,
        /// The number of requests.
        sent: u64,
    },
    /// Rate × latency differs from the requests in flight (Little's law), so one of the three was
    /// measured wrongly.
    Little {
        /// Rate × mean latency.
        in_flight: f64,
        /// Connections, each with one request in flight.
        connections: usize,
    },
    /// Other processes or the hypervisor used the machine, or memory was short.
    Noisy {
        /// The share taken.
        taken: f64,
        /// The cause.
        by: String,
    },
}

impl Refusal {
    /// The most severe reason against this slice.
    pub fn of(slice: &Slice) -> Option<Self> {
        ports(slice)
            .or_else(|| bodies(slice))
            .or_else(|| failing(slice))
            .or_else(|| little(slice))
            .or_else(|| noisy(slice))
            .or_else(|| saturated(slice))
    }

    /// Whether others used the machine, regardless of other reasons.
    pub fn of_noise(slice: &Slice) -> Option<Self> {
        noisy(slice)
    }

    /// The reason against a whole series: a fault in any slice, or another reason in more than a
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

    /// Whether the reason may be temporary.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Noisy { .. } | Self::Little { .. } | Self::PortsExhausted { .. })
    }

    /// Whether it forbids comparing this metric. CPU per request does not depend on the generator's
    /// speed.
    pub fn forbids(&self, metric: Metric) -> bool {
        !(matches!(self, Self::ClientSaturated { .. }) && metric == Metric::Cpu)
    }

    /// The scope, to follow "is not ranked".
    pub fn scope(&self) -> &'static str {
        if self.forbids(Metric::Cpu) { "" } else { " by rate and latency" }
    }

    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

fn ports(slice: &Slice) -> Option<Refusal> {
    let connections = slice.load.failures.count(Failure::Ports);
    (connections > 0).then_some(Refusal::PortsExhausted { connections })
}

fn bodies(slice: &Slice) -> Option<Refusal> {
    let count = |failure| slice.load.failures.count(failure);
    let responses = count(Failure::Length) + count(Failure::Body);
    (responses > 0).then_some(Refusal::BodiesDiffer { responses })
}

fn failing(slice: &Slice) -> Option<Refusal> {
    let failed = slice.load.failures.total();
    let sent = slice.load.responses + slice.load.failures.unanswered();
    (failed as f64 > FAILED * sent as f64).then_some(Refusal::Failing { failed, sent })
}

/// There can never be more requests in flight than connections. Fewer are a fault only if no
/// response took so long that it reached beyond the end, where connections become idle one by one.
fn little(slice: &Slice) -> Option<Refusal> {
    let load = &slice.load;
    if load.offered.is_some() {
        // With a schedule, connections may be idle.
        return None;
    }
    let mean_us = load.latency.mean_us.filter(|_| load.connections > 0 && load.seconds > 0.0)?;
    let in_flight = load.rate() * mean_us / 1e6;
    let share = in_flight / load.connections as f64;
    let tail = load.latency.max_us / 1e6 / load.seconds;
    // The generator's own work between a response and the next request is part of no latency.
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
    let stack_limits = (slice.cpu_us + slice.shared_us) as f64 >= BUSY_STACK * left_us as f64;
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
            Self::BodiesDiffer { responses } => {
                write!(f, "{responses} responses had other bytes than the one compared before")
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
