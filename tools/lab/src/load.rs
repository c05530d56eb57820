//! The result of one run of a generator: responses, failures by class, latencies.
//!
//! Filled by [`crate::generator`], [`crate::wrk`] and [`crate::h2load`]; read by experiments and
//! reports.

pub use outboard_load::{Failure, Failures};
use serde::{Deserialize, Serialize};

/// Latency percentiles of one run in µs. In a closed loop the next request waits for the last
/// response, so this is the service time under that load and not what a user would wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// The mean; `None` if the generator does not report it.
    pub mean_us: Option<f64>,
}

/// Responses of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// Their number.
    pub responses: u64,
    /// Time from sending to the complete response, without the wait for a free connection.
    pub service: Latency,
}

/// The quantiles of a [`Load::spectrum_us`], which is drawn as a line through them.
pub const QUANTILES: [f64; 11] =
    [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999];

/// One run of a generator.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Load {
    /// Complete responses of any status.
    pub responses: u64,
    /// Requests that failed.
    pub failures: Failures,
    /// How long the run took.
    pub seconds: f64,
    /// Requests sent on a connection that was used before; `None` if the generator does not report
    /// it.
    pub reused: Option<u64>,
    /// Latencies of the responses.
    pub latency: Latency,
    /// The good responses with their service times; empty if the generator does not report them.
    #[serde(default)]
    pub accepted: Served,
    /// The refused requests (429, 503).
    #[serde(default)]
    pub refused: Served,
    /// Latency in µs at each of [`QUANTILES`] for which there were enough responses; empty if the
    /// generator does not report it.
    #[serde(default)]
    pub spectrum_us: Vec<f64>,
    /// The scheduled rate in requests per second; `None` in a closed loop.
    #[serde(default)]
    pub offered: Option<f64>,
    /// The 99th percentile of the generator's own delay, in µs; `None` without a schedule.
    #[serde(default)]
    pub late_p99_us: Option<f64>,
    /// The number of connections.
    pub connections: usize,
    /// CPU time of the generator's one thread, in µs.
    pub client_us: u64,
    /// CPU time of the stack in µs, from the first request to the last response, without opening
    /// and closing connections. `None` if the generator does not report it.
    #[serde(default)]
    pub server_us: Option<u64>,
}

impl Load {
    /// Responses per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.responses as f64 / self.seconds } else { 0.0 }
    }
}
