//! [`Moment`]: what one interval of a run came to.
//!
//! Made by `run` while it goes on; the time series of a summary is a list of them.

use crate::failures::Failures;
use crate::recorder::Slice;

/// One interval of the time series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moment {
    /// When it began, in seconds from the beginning of the run.
    pub at_seconds: f64,
    /// How long it was.
    pub seconds: f64,
    /// Requests sent in it.
    pub sent: u64,
    /// Whole answers, of any status.
    pub answers: u64,
    /// Of these, refusals: 429 or 503.
    pub refused: u64,
    /// Requests that failed.
    pub failures: Failures,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Latency that half of the requests had at most, in ns.
    pub p50_ns: u64,
    /// Latency that 99 % had at most.
    pub p99_ns: u64,
    /// The highest latency.
    pub max_ns: u64,
    /// Time of service that 99 % had at most: from when they were sent.
    pub service_p99_ns: u64,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Requests that were due and had no connection, at worst.
    pub backlog_max: u64,
}

impl Moment {
    pub(crate) fn of(slice: &Slice, at_seconds: f64, seconds: f64) -> Self {
        let service = slice.service.as_ref().unwrap_or(&slice.latency);
        Self {
            at_seconds,
            seconds,
            sent: slice.sent,
            answers: slice.answers,
            refused: slice.refused,
            failures: slice.failures,
            body_bytes: slice.body_bytes,
            p50_ns: slice.latency.value_at_quantile(0.5),
            p99_ns: slice.latency.value_at_quantile(0.99),
            max_ns: slice.latency.max(),
            service_p99_ns: service.value_at_quantile(0.99),
            in_flight: slice.in_flight,
            backlog_max: slice.backlog_max,
        }
    }

    /// Answers a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.answers as f64 / self.seconds } else { 0.0 }
    }
}
