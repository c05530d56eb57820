//! [`Warning`]: why a result is not reliable, derived from the result itself.
//!
//! A number that is caused by the load generator's own limits, by ports running out or by
//! inconsistent counts is worse than none, so callers refuse to compare a result with warnings.

use crate::failures::Failure;
use crate::plan::Load;
use crate::summary::Summary;
use std::fmt;

/// Above this share of its cores, the generator measures itself.
const CLIENT_SHARE_MAX: f64 = 0.85;
/// Shorter runs say nothing about CPU use.
const BUSY_SECONDS_MIN: f64 = 0.1;
/// Limit of the generator's own delay, as its 99th percentile.
const LAG_NS_MAX: u64 = 1_000_000;
/// The same as a share of the median latency; the larger limit applies.
const LAG_SHARE_MAX: f64 = 0.10;
/// The share of the schedule that must have been sent.
const RATE_RATIO_MIN: f64 = 0.99;
/// The tolerated difference between rate × service time and the busy connections.
const LITTLE_TOLERANCE: f64 = 0.05;
/// Shorter runs have too few requests for Little's law.
const LITTLE_SECONDS_MIN: f64 = 1.0;

/// One reason why a result is not reliable.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The generator used so much of its cores that it was the limit.
    ClientBusy {
        /// 1 means all threads all the time.
        share: f64,
    },
    /// The generator sent later than it should have.
    ClientLate {
        /// 99 % of requests were sent at most this late.
        lag_p99_ns: u64,
        /// The limit.
        limit_ns: u64,
    },
    /// Connections failed because this machine had no free port.
    PortsExhausted {
        /// Their number.
        connections: u64,
    },
    /// Rate × service time differs from the requests in flight (Little's law), so some of the time
    /// is unaccounted for.
    Little {
        /// The computed requests in flight.
        found: f64,
        /// The actual requests in flight.
        expected: f64,
    },
    /// The rate was missed: a request was always waiting for a connection.
    RateMissed {
        /// The share of the schedule that was sent.
        ratio: f64,
    },
    /// Requests sent differ from responses and failures together.
    Miscounted {
        /// Requests sent.
        sent: u64,
        /// Requests that ended.
        ended: u64,
    },
    /// There was no response.
    NoResponses,
}

impl Summary {
    /// Why these numbers are not reliable; empty if they are.
    pub fn warnings(&self) -> Vec<Warning> {
        let found = [
            Warning::no_responses(self),
            Warning::ports(self),
            Warning::client_busy(self),
            Warning::client_late(self),
            Warning::rate_missed(self),
            Warning::little(self),
            Warning::miscounted(self),
        ];
        found.into_iter().flatten().collect()
    }
}

impl Warning {
    /// The name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClientBusy { .. } => "client-busy",
            Self::ClientLate { .. } => "client-late",
            Self::PortsExhausted { .. } => "ports-exhausted",
            Self::Little { .. } => "little",
            Self::RateMissed { .. } => "rate-missed",
            Self::Miscounted { .. } => "miscounted",
            Self::NoResponses => "no-responses",
        }
    }

    fn no_responses(summary: &Summary) -> Option<Self> {
        (summary.responses == 0).then_some(Self::NoResponses)
    }

    fn ports(summary: &Summary) -> Option<Self> {
        let connections = summary.failures.count(Failure::Ports);
        (connections > 0).then_some(Self::PortsExhausted { connections })
    }

    fn client_busy(summary: &Summary) -> Option<Self> {
        let share = summary.client_share();
        let is_busy = share > CLIENT_SHARE_MAX && summary.seconds >= BUSY_SECONDS_MIN;
        is_busy.then_some(Self::ClientBusy { share })
    }

    fn client_late(summary: &Summary) -> Option<Self> {
        let lag_p99_ns = summary.lag.value_at_quantile(0.99);
        let share_ns = summary.latency.value_at_quantile(0.5) as f64 * LAG_SHARE_MAX;
        let limit_ns = LAG_NS_MAX.max(share_ns as u64);
        let is_late = !summary.lag.is_empty() && lag_p99_ns > limit_ns;
        is_late.then_some(Self::ClientLate { lag_p99_ns, limit_ns })
    }

    fn rate_missed(summary: &Summary) -> Option<Self> {
        let ratio = summary.rate_ratio();
        (ratio < RATE_RATIO_MIN).then_some(Self::RateMissed { ratio })
    }

    /// In a closed loop every connection is always busy, so the mean in flight is known.
    fn little(summary: &Summary) -> Option<Self> {
        let expected = (summary.connections * summary.streams) as f64;
        let found = summary.in_flight_mean;
        let applies = summary.load == Load::Closed
            && !summary.has_pauses
            && summary.seconds >= LITTLE_SECONDS_MIN
            && summary.failures.unanswered() == 0
            && summary.closed_by_server == 0;
        let is_off = (found - expected).abs() > expected * LITTLE_TOLERANCE;
        (applies && is_off).then_some(Self::Little { found, expected })
    }

    fn miscounted(summary: &Summary) -> Option<Self> {
        let ended = summary.responses + summary.failures.unanswered() + summary.unfinished;
        // Connections that fail between requests are failures without a request.
        (ended < summary.sent).then_some(Self::Miscounted { sent: summary.sent, ended })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        match self {
            Self::ClientBusy { share } => write!(
                f,
                "the load generator itself was busy {:.0} % of the time (more than 85 %): this is \
                 its limit and not the server's; give it more threads (-t) or fewer requests",
                share * 100.0
            ),
            Self::ClientLate { lag_p99_ns, limit_ns } => write!(
                f,
                "the load generator sent 1 % of the requests more than {:.2} ms late by its own \
                 fault (allowed are {:.2} ms)",
                ms(*lag_p99_ns),
                ms(*limit_ns)
            ),
            Self::PortsExhausted { connections } => write!(
                f,
                "{connections} connections found no free port on this machine; keep connections \
                 alive, or lower the rate"
            ),
            Self::Little { found, expected } => write!(
                f,
                "rate × time of service says that {found:.1} requests were in flight, but {expected} \
                 were sent and unanswered all the time: some of the time is unaccounted for"
            ),
            Self::RateMissed { ratio } => write!(
                f,
                "only {:.1} % of the requests that were due were sent: the server (or the number \
                 of connections) does not carry this rate, and latencies grow with the length of \
                 the run",
                ratio * 100.0
            ),
            Self::Miscounted { sent, ended } => {
                write!(f, "{sent} requests were sent, but {ended} ended: the counts are wrong")
            }
            Self::NoResponses => f.write_str("not one request was answered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Slice;
    use crate::schedule::{Arrival, Rate};
    use crate::{Plan, Target};

    /// A reliable closed loop of 64 connections over 10 s.
    fn sound() -> Summary {
        let plan = Plan::new(Target::parse("http://127.0.0.1:1/").expect("a URL"));
        let mut slice = Slice::new(false);
        (slice.sent, slice.responses) = (100_064, 100_000);
        slice.latency.saturating_record_n(6_400_000, 100_000);
        Summary {
            seconds: 10.0,
            unfinished: 64,
            in_flight_mean: 63.9,
            client_cpu_us: 1_000_000,
            ..Summary::of(&plan, &slice, Vec::new(), Vec::new(), None)
        }
    }

    fn names(summary: &Summary) -> Vec<&'static str> {
        summary.warnings().iter().map(Warning::name).collect()
    }

    #[test]
    fn a_reliable_run_has_no_warnings() {
        assert!(names(&sound()).is_empty());
    }

    #[test]
    fn a_generator_at_its_limit_is_a_warning() {
        assert_eq!(names(&Summary { client_cpu_us: 8_600_000, ..sound() }), ["client-busy"]);
        let mut late = sound();
        late.lag.saturating_record_n(3_000_000, 100);
        assert_eq!(names(&late), ["client-late"]);
    }

    #[test]
    fn a_delay_far_below_the_latency_does_not_matter() {
        let mut slow = sound();
        slow.latency.saturating_record_n(100_000_000, 1_000_000);
        slow.lag.saturating_record_n(3_000_000, 100);
        assert!(names(&slow).is_empty());
    }

    #[test]
    fn a_missed_rate_is_a_warning() {
        let rate = Rate::Fixed(10_000.0);
        let load = Load::Open { rate, arrival: Arrival::Even, deadline: None };
        let missed = Summary { load, due: 102_000, unsent: 1936, ..sound() };
        assert_eq!(names(&missed), ["rate-missed"]);
    }

    #[test]
    fn inconsistent_counts_are_a_warning() {
        assert_eq!(names(&Summary { in_flight_mean: 50.0, ..sound() }), ["little"]);
        assert_eq!(names(&Summary { responses: 90_000, ..sound() }), ["miscounted"]);
        let none = Summary { responses: 0, unfinished: 100_064, ..sound() };
        assert_eq!(names(&none), ["no-responses"]);
    }

    #[test]
    fn exhausted_ports_are_a_warning() {
        let mut failures = crate::Failures::default();
        failures.add(Failure::Ports);
        assert_eq!(names(&Summary { failures, sent: 100_065, ..sound() }), ["ports-exhausted"]);
    }
}
