//! The metrics that stacks are compared by.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::series::Series;

/// One number per slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Server CPU per request: the most important one, since it is robust against noise.
    Cpu,
    /// Responses per second.
    Rate,
    /// The 99th percentile of latency under this closed loop.
    P99,
}

impl Metric {
    /// All metrics, the most important first.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Rate, Self::P99];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU per request",
            Self::Rate => "responses per second",
            Self::P99 => "p99",
        }
    }

    /// Its value in every slice: µs, per second, µs.
    pub fn values(self, series: &Series) -> Vec<f64> {
        match self {
            Self::Cpu => series.cpu_us(),
            Self::Rate => series.rates(),
            Self::P99 => series.values(|slice| slice.load.latency.p99_us),
        }
    }

    /// Whether less of it is better.
    pub fn lower_is_better(self) -> bool {
        self != Self::Rate
    }

    /// The ratio up to which two stacks count as equal, less one.
    pub fn theta(self) -> f64 {
        match self {
            Self::Cpu | Self::Rate => 0.02,
            Self::P99 => 0.05,
        }
    }
}
