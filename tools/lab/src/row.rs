//! [`Row`]: what was measured of one stack in one experiment, as tables show it.
//!
//! Added to a [`crate::report`] from the slices of a series, which it keeps.

use serde::{Deserialize, Serialize};

use crate::load::Failures;
use crate::refusal::Refusal;
use crate::series::Series;

/// One stack in one experiment: medians over its slices.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The name of the [`Section`].
    pub section: String,
    /// The experiment and its settings.
    pub experiment: String,
    /// The stack.
    pub stack: String,
    /// Responses of all slices.
    pub responses: u64,
    /// Failed requests of all slices, by class.
    pub failures: Failures,
    /// Share of requests on connections that were used before; `None` if the generator does not
    /// report it.
    pub keep_alive: Option<f64>,
    /// Responses per second.
    pub rate: f64,
    /// Median latency in ms.
    pub p50_ms: f64,
    /// 99th percentile of latency in ms.
    pub p99_ms: f64,
    /// Server CPU per response in µs.
    pub cpu_us: f64,
    /// Instructions per request in user space, if they were counted.
    #[serde(default)]
    pub instructions: Option<f64>,
    /// Proportional memory in MiB.
    pub pss_mib: f64,
    /// Why it must not be ranked.
    pub refusal: Option<Refusal>,
    /// The slices behind the medians.
    pub slices: Series,
}

impl Row {
    /// Instructions per request in a table; a dash if they were not counted.
    pub fn instructions_text(&self) -> String {
        self.instructions.map_or_else(|| "–".into(), |count| format!("{count:.0}"))
    }

    /// The medians of a series.
    pub fn of(section: &str, experiment: &str, series: &Series) -> Self {
        Self {
            section: section.into(),
            experiment: experiment.into(),
            stack: series.stack.clone(),
            responses: series.responses(),
            failures: series.failures(),
            keep_alive: series.keep_alive(),
            rate: series.median(|slice| slice.load.rate()),
            p50_ms: series.median(|slice| slice.load.latency.p50_us) / 1e3,
            p99_ms: series.median(|slice| slice.load.latency.p99_us) / 1e3,
            cpu_us: series.median(|slice| slice.cpu_us_per_response()),
            instructions: None,
            pss_mib: series.median(|slice| slice.pss_bytes as f64) / 1_048_576.0,
            refusal: Refusal::of_series(series),
            slices: series.clone(),
        }
    }
}
