//! Slices: short runs of load on one stack after the other, in balanced order.
//!
//! All stacks stay up. A round gives each one slice, and the order rotates and reverses from round
//! to round, so that drift of the machine affects all alike. Invariant: slice `n` of every series
//! comes from round `n`: they are the pairs of [`crate::statistics`]. A round with a temporary
//! [`Refusal`] is repeated, a bounded number of times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::balanced_order::order;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::lab::Lab;
use crate::load::{Failures, Load};
use crate::machine::Ticks;
use crate::profile::{self, Profile};
use crate::refusal::Refusal;
use crate::stack::Stack;
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

/// Runs load on a stack and measures its cost. `shared` is a server that all stacks use, such as a
/// database, which is accounted separately.
pub fn measure(
    lab: &Lab,
    stack: &Stack,
    shared: Option<&Group>,
    load: impl FnOnce(&Stack) -> Result<Load>,
) -> Result<Slice> {
    let shared_us = || shared.map_or(0, Group::cpu_us);
    stack.settle();
    let by_name = stack.group.cpu_us_by_name();
    let (ticks, cpu_us, shared_before_us) = (Ticks::now(), stack.group.cpu_us(), shared_us());
    let load = load(stack)?;
    let spent_us = stack.group.cpu_us().saturating_sub(cpu_us);
    let shared_us = shared_us().saturating_sub(shared_before_us);
    let passed = Ticks::now().since(&ticks);
    let mut by_process_us = stack.group.cpu_us_by_name();
    for (name, us) in &mut by_process_us {
        *us = us.saturating_sub(by_name.get(name).copied().unwrap_or(0));
    }
    Ok(Slice {
        cpu_us: load.server_us.unwrap_or(spent_us),
        load,
        by_process_us,
        shared_us,
        pss_bytes: stack.group.pss_bytes(),
        machine_us: passed.total_us(),
        noise: passed.taken_by_others(spent_us + shared_us),
        noise_limit: lab.effort.noise_limit,
        stolen: passed.stolen(),
        stalled: passed.stalled(lab.cores),
    })
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

/// Series of the same rounds.
#[derive(Default)]
pub struct Rounds {
    /// One series per stack, in the order given.
    pub series: Vec<Series>,
    /// Repeated rounds, each for a temporary reason.
    pub repeated: usize,
    /// Profiles, if requested.
    pub profiles: Vec<Profile>,
}

impl Rounds {
    /// The number of rounds.
    pub fn pairs(&self) -> usize {
        self.series.first().map_or(0, |series| series.slices.len())
    }

    /// Appends later rounds of the same stacks.
    pub fn extend(&mut self, later: Self) {
        self.repeated += later.repeated;
        self.profiles.extend(later.profiles);
        if self.series.is_empty() {
            self.series = later.series;
            return;
        }
        for (series, later) in self.series.iter_mut().zip(later.series) {
            series.slices.extend(later.slices);
        }
    }

    /// The series of a stack.
    pub fn of(&self, stack: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.stack == stack)
    }
}

/// How stacks take turns.
pub struct Turns<'a> {
    /// Slices per stack.
    pub slices: usize,
    /// The server that all stacks share.
    pub shared: Option<&'a Group>,
}

/// Gives every stack `lab.effort.slices` slices in interleaved rounds, after an uncounted round for
/// warming up.
pub fn interleave(
    lab: &Lab,
    stacks: &[&Stack],
    load: impl FnMut(&Stack) -> Result<Load>,
) -> Result<Rounds> {
    Turns { slices: lab.effort.slices, shared: None }.take(lab, stacks, load)
}

impl Turns<'_> {
    /// Gives every stack its slices, after an uncounted round for warming up, then takes profiles
    /// if requested.
    pub fn take(
        &self,
        lab: &Lab,
        stacks: &[&Stack],
        mut load: impl FnMut(&Stack) -> Result<Load>,
    ) -> Result<Rounds> {
        let mut rounds = self.only(lab, stacks, &mut load)?;
        if lab.effort.takes_profiles {
            rounds.profiles = profile::of_stacks(lab, stacks, load)?;
        }
        Ok(rounds)
    }

    /// The same without profiles.
    pub fn only(
        &self,
        lab: &Lab,
        stacks: &[&Stack],
        mut load: impl FnMut(&Stack) -> Result<Load>,
    ) -> Result<Rounds> {
        for stack in stacks {
            check_some_responses(stack.name, &load(stack)?)?;
        }
        let names: Vec<&str> = stacks.iter().map(|stack| stack.name).collect();
        self.among(lab, &names, |index| measure(lab, stacks[index], self.shared, &mut load))
    }

    /// Interleaves anything with these names; `measure` takes the slice of an index.
    pub fn among(
        &self,
        lab: &Lab,
        names: &[&str],
        mut measure: impl FnMut(usize) -> Result<Slice>,
    ) -> Result<Rounds> {
        let empty = |name: &&str| Series { stack: (*name).into(), slices: Vec::new() };
        let series = names.iter().map(empty).collect();
        let mut rounds = Rounds { series, ..Rounds::default() };
        let mut round = 0;
        while round < self.slices {
            let mut slices = vec![Slice::default(); names.len()];
            for index in order(round, names.len()) {
                slices[index] = measure(index)?;
            }
            let passing = slices.iter().filter_map(Refusal::of).find(Refusal::may_pass);
            if let Some(refusal) = passing.filter(|_| rounds.repeated < self.slices / 2) {
                lab.progress(&format!("repeated: {refusal}"));
                rounds.repeated += 1;
                continue;
            }
            lab.progress(&line(round, names, &slices));
            let pairs = rounds.series.iter_mut().zip(slices);
            pairs.for_each(|(series, slice)| series.slices.push(slice));
            round += 1;
        }
        Ok(rounds)
    }
}

fn check_some_responses(who: &str, load: &Load) -> Result<()> {
    if load.responses > 0 {
        return Ok(());
    }
    let what = format!("no response while warming up; failures: {:?}", load.failures);
    Err(Error::Unexpected { who: who.into(), what })
}

fn line(round: usize, names: &[&str], slices: &[Slice]) -> String {
    let cell = |(name, slice): (&&str, &Slice)| {
        let (us, rate) = (slice.cpu_us_per_response(), slice.load.rate());
        format!("{name} {us:.2} µs, {rate:.0}/s")
    };
    let cells: Vec<String> = names.iter().zip(slices).map(cell).collect();
    format!("round {:>2}: CPU per request: {}", round + 1, cells.join("; "))
}
