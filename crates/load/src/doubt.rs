//! [`Doubt`]: why a result should not be believed, found out from the result itself.
//!
//! A number that was made by the load generator's own limits, by ports running out or by
//! arithmetic that cannot be is worse than none: who reads the doubts refuses to compare it.

use crate::failures::Failure;
use crate::plan::Load;
use crate::summary::Summary;
use std::fmt;

/// More of its cores than that, and the generator itself is what was measured.
const CLIENT_SHARE_MAX: f64 = 0.85;
/// In less time there is nothing to be busy with, or not.
const BUSY_SECONDS_MIN: f64 = 0.1;
/// The generator's own delay, by its 99th percentile, may be so much.
const LAG_NS_MAX: u64 = 1_000_000;
/// Or this share of the median latency, where that is more.
const LAG_SHARE_MAX: f64 = 0.10;
/// So much of the schedule must have been sent.
const RATE_RATIO_MIN: f64 = 0.99;
/// How far arrival rate times time of service may be from the connections that were busy.
const LITTLE_TOLERANCE: f64 = 0.05;
/// Shorter runs have too few requests for the law to show.
const LITTLE_SECONDS_MIN: f64 = 1.0;

/// One reason not to believe a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt {
    /// The generator used so large a share of its cores that it was the limit.
    ClientBusy {
        /// 1 is all of its threads, all the time.
        share: f64,
    },
    /// The generator sent later than it could have.
    ClientLate {
        /// 99 % of requests were sent at most so late.
        lag_p99_ns: u64,
        /// What would have been good enough.
        limit_ns: u64,
    },
    /// Connections failed because this machine had no port left for them.
    PortsExhausted {
        /// How many.
        connections: u64,
    },
    /// Rate times time of service is not the number of requests in flight (Little's law): some of
    /// the time is unaccounted for.
    Little {
        /// What was in flight by that product.
        found: f64,
        /// What must have been.
        expected: f64,
    },
    /// The schedule could not be kept: there was always a request waiting for a connection.
    RateMissed {
        /// The share of the schedule that was sent.
        ratio: f64,
    },
    /// Requests sent are not answers and failures together.
    Miscounted {
        /// Requests sent.
        sent: u64,
        /// Requests that ended in some way.
        ended: u64,
    },
    /// Nothing was answered at all.
    NoAnswers,
}

impl Doubt {
    pub(crate) fn about(summary: &Summary) -> Vec<Self> {
        let found = [
            Self::no_answers(summary),
            Self::ports(summary),
            Self::client_busy(summary),
            Self::client_late(summary),
            Self::rate_missed(summary),
            Self::little(summary),
            Self::miscounted(summary),
        ];
        found.into_iter().flatten().collect()
    }

    /// A word for it, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClientBusy { .. } => "client-busy",
            Self::ClientLate { .. } => "client-late",
            Self::PortsExhausted { .. } => "ports-exhausted",
            Self::Little { .. } => "little",
            Self::RateMissed { .. } => "rate-missed",
            Self::Miscounted { .. } => "miscounted",
            Self::NoAnswers => "no-answers",
        }
    }

    fn no_answers(summary: &Summary) -> Option<Self> {
        (summary.answers == 0).then_some(Self::NoAnswers)
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
        let ended = summary.answers + summary.failures.unanswered() + summary.unfinished;
        // Connections that fail between requests are failures without a request.
        (ended < summary.sent).then_some(Self::Miscounted { sent: summary.sent, ended })
    }
}

impl fmt::Display for Doubt {
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
            Self::NoAnswers => f.write_str("not one request was answered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Slice;
    use crate::schedule::{Arrival, Rate};
    use crate::{Plan, Target};

    /// A closed loop of 64 connections over 10 s that nothing speaks against.
    fn sound() -> Summary {
        let plan = Plan::new(Target::parse("http://127.0.0.1:1/").expect("a URL"));
        let mut slice = Slice::new(false);
        (slice.sent, slice.answers) = (100_064, 100_000);
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
        summary.doubts().iter().map(Doubt::name).collect()
    }

    #[test]
    fn nothing_speaks_against_a_sound_run() {
        assert!(names(&sound()).is_empty());
    }

    #[test]
    fn a_generator_at_its_limit_is_not_believed() {
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
    fn a_schedule_that_was_not_kept_is_not_believed() {
        let rate = Rate::Fixed(10_000.0);
        let load = Load::Open { rate, arrival: Arrival::Even, deadline: None };
        let missed = Summary { load, due: 102_000, unsent: 1936, ..sound() };
        assert_eq!(names(&missed), ["rate-missed"]);
    }

    #[test]
    fn arithmetic_that_cannot_be_is_not_believed() {
        assert_eq!(names(&Summary { in_flight_mean: 50.0, ..sound() }), ["little"]);
        assert_eq!(names(&Summary { answers: 90_000, ..sound() }), ["miscounted"]);
        let none = Summary { answers: 0, unfinished: 100_064, ..sound() };
        assert_eq!(names(&none), ["no-answers"]);
    }

    #[test]
    fn ports_that_ran_out_are_no_failure_of_the_server() {
        let mut failures = crate::Failures::default();
        failures.add(Failure::Ports);
        assert_eq!(names(&Summary { failures, sent: 100_065, ..sound() }), ["ports-exhausted"]);
    }
}
