//! Slices: short runs of load on one stack after the other, in balanced order.
//!
//! All stacks stay up. A round gives each one slice, and the order rotates and reverses from round
//! to round, so that drift of the machine affects all alike. Invariant: slice `n` of every series
//! comes from round `n`: they are the pairs of [`crate::statistics`]. A round with a temporary
//! [`Refusal`] is repeated, a bounded number of times.

use crate::balanced_order::order;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::lab::Lab;
use crate::load::Load;
use crate::machine::Ticks;
use crate::profile::{self, Profile};
use crate::refusal::Refusal;
use crate::series::{Series, Slice};
use crate::stack::Stack;

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
