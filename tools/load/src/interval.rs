//! [`Interval`]: the results of one interval of a run.
//!
//! Created by `run` as it proceeds; a summary has a list of them as its time series.

use crate::failures::Failures;
use crate::recorder::Slice;

/// One interval of the time series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// Its start, in seconds since the start of the run.
    pub at_seconds: f64,
    /// Its length.
    pub seconds: f64,
    /// Requests sent.
    pub sent: u64,
    /// Complete responses of any status.
    pub responses: u64,
    /// Responses among them with status 429 or 503.
    pub refused: u64,
    /// Requests that failed.
    pub failures: Failures,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Median latency in ns.
    pub p50_ns: u64,
    /// 99th percentile of latency.
    pub p99_ns: u64,
    /// Highest latency.
    pub max_ns: u64,
    /// 99th percentile of service time, which counts from sending.
    pub service_p99_ns: u64,
    /// Requests in flight at the end of the interval.
    pub in_flight: u64,
    /// The largest number of requests that were due and had no connection.
    pub backlog_max: u64,
}

impl Interval {
    pub(crate) fn of(slice: &Slice, at_seconds: f64, seconds: f64) -> Self {
        let service = slice.service.as_ref().unwrap_or(&slice.latency);
        Self {
            at_seconds,
            seconds,
            sent: slice.sent,
            responses: slice.responses,
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

    /// Responses per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.responses as f64 / self.seconds } else { 0.0 }
    }
}
