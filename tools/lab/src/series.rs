//! [`Slice`] and [`Series`]: what was measured of one stack.
//!
//! Measured by [`crate::slice`], compared and rendered by others. Pure data, as stored in a report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load::{Failures, Load};
use crate::statistics::median;

/// One run of load on one stack.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Slice {
    /// The generator's result.
    pub load: Load,
    /// User and system time of all the stack's processes in µs: from the first request to the last
    /// response if the generator reports it, otherwise including connecting.
    pub cpu_us: u64,
    /// CPU time by command name. These clocks are coarser, so only the shares are used.
    pub by_process_us: BTreeMap<String, u64>,
    /// CPU time of what all stacks share, such as the database.
    pub shared_us: u64,
    /// Proportional memory of the stack at the end, in bytes.
    pub pss_bytes: u64,
    /// All the CPU time that the machine had during the run, in µs.
    pub machine_us: u64,
    /// Share of the machine's cores used by the hypervisor and by processes of neither the stack
    /// nor the lab.
    pub noise: f64,
    /// The limit of it.
    pub noise_limit: f64,
    /// The hypervisor's part of it.
    pub stolen: f64,
    /// Share of the time in which everything waited for memory.
    pub stalled: f64,
}

impl Slice {
    /// Server CPU per answered request in µs.
    pub fn cpu_us_per_response(&self) -> f64 {
        self.cpu_us as f64 / self.load.responses.max(1) as f64
    }
}

/// All slices of one stack, in order of rounds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    /// The stack's name.
    pub stack: String,
    /// Its slices.
    pub slices: Vec<Slice>,
}

impl Series {
    /// One value per slice.
    pub fn values(&self, value: impl Fn(&Slice) -> f64) -> Vec<f64> {
        self.slices.iter().map(value).collect()
    }

    /// The median over the slices.
    pub fn median(&self, value: impl Fn(&Slice) -> f64) -> f64 {
        median(&self.values(value))
    }

    /// Responses per second, slice by slice.
    pub fn rates(&self) -> Vec<f64> {
        self.values(|slice| slice.load.rate())
    }

    /// Server CPU per response in µs, slice by slice.
    pub fn cpu_us(&self) -> Vec<f64> {
        self.values(Slice::cpu_us_per_response)
    }

    /// CPU per response of the shared server in µs: the median.
    pub fn shared_us(&self) -> f64 {
        self.median(|slice| slice.shared_us as f64 / slice.load.responses.max(1) as f64)
    }

    /// Failures of all slices together.
    pub fn failures(&self) -> Failures {
        let mut sum = Failures::default();
        self.slices.iter().for_each(|slice| sum += slice.load.failures);
        sum
    }

    /// Whether every request succeeded and every slice has responses.
    pub fn is_flawless(&self) -> bool {
        self.failures().total() == 0 && self.slices.iter().all(|slice| slice.load.responses > 0)
    }

    /// Share of requests on connections that were used before.
    pub fn keep_alive(&self) -> Option<f64> {
        let reused = self.slices.iter().map(|slice| slice.load.reused).sum::<Option<u64>>()?;
        let sent = self.responses() + self.failures().unanswered();
        Some(reused as f64 / sent.max(1) as f64)
    }

    /// Responses of all slices together.
    pub fn responses(&self) -> u64 {
        self.slices.iter().map(|slice| slice.load.responses).sum()
    }
}
