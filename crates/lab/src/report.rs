//! The result of a run: the machine, a row per experiment and stack, the verdicts, the notes.
//!
//! Experiments add to it, [`crate::table`] prints it, `--json` writes it.

use serde::Serialize;

use crate::load::Failures;
use crate::machine::Machine;
use crate::slice::{Rounds, Series};
use crate::verdict::Verdict;

/// Everything that a run found out.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured, stack by stack.
    pub rows: Vec<Row>,
    /// The bars.
    pub verdicts: Vec<Verdict>,
    /// What a reader should know beside the numbers.
    pub notes: Vec<String>,
}

/// One stack in one experiment: medians over its slices.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The experiment and its settings.
    pub experiment: String,
    /// The stack.
    pub stack: String,
    /// Answers of all slices.
    pub answers: u64,
    /// Failed requests of all slices, by class.
    pub failures: Failures,
    /// Share of requests that came over a connection that had answered before; `None` where the
    /// generator does not tell.
    pub keep_alive: Option<f64>,
    /// Answers per second.
    pub rate: f64,
    /// Median latency in ms.
    pub p50_ms: f64,
    /// 99th percentile of latency in ms.
    pub p99_ms: f64,
    /// Server CPU per answer in µs.
    pub cpu_us: f64,
    /// Proportional memory in MiB.
    pub pss_mib: f64,
    /// The slices behind the medians.
    pub slices: Series,
}

impl Report {
    /// Adds a row per stack, and a note when the machine was noisy.
    pub fn add_rounds(&mut self, experiment: &str, rounds: &Rounds) {
        for series in &rounds.series {
            self.rows.push(Row::of(experiment, series));
        }
        if rounds.repeated + rounds.noisy > 0 {
            self.notes.push(format!(
                "{experiment}: {} rounds taken again and {} kept although others used the machine",
                rounds.repeated, rounds.noisy
            ));
        }
    }
}

impl Row {
    fn of(experiment: &str, series: &Series) -> Self {
        Self {
            experiment: experiment.into(),
            stack: series.stack.into(),
            answers: series.answers(),
            failures: series.failures(),
            keep_alive: series.keep_alive(),
            rate: series.median(|slice| slice.load.rate()),
            p50_ms: series.median(|slice| slice.load.latency.p50_us) / 1e3,
            p99_ms: series.median(|slice| slice.load.latency.p99_us) / 1e3,
            cpu_us: series.median(|slice| slice.cpu_us_per_answer()),
            pss_mib: series.median(|slice| slice.pss_bytes as f64) / 1_048_576.0,
            slices: series.clone(),
        }
    }
}
