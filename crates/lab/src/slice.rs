//! Slices: short runs of load on one stack after the other, in balanced order.
//!
//! All stacks stay up; a round gives each one slice, and the order rotates and turns round from
//! round to round, so that drift of the machine hits all alike. Invariant: slice `n` of every
//! series comes from round `n`: they are the pairs of [`crate::statistics`]. A round in which
//! the machine was busy with something else is taken again, a bounded number of times.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::group::Group;
use crate::lab::Lab;
use crate::load::{Failures, Load};
use crate::machine::Ticks;
use crate::stack::Stack;
use crate::statistics::median;

/// The share of the machine that others may take before a round is taken again.
const NOISE_LIMIT: f64 = 0.10;

/// One run of load on one stack.
#[derive(Debug, Clone, Serialize)]
pub struct Slice {
    /// What the generator saw.
    pub load: Load,
    /// User and system time of all the stack's processes during the run, in µs.
    pub cpu_us: u64,
    /// The same of what serves all stacks alike.
    pub beside_us: u64,
    /// Proportional memory of the stack at the end, in bytes.
    pub pss_bytes: u64,
    /// Share of the machine's cores taken by the hypervisor and by processes that belong to
    /// neither the stack nor the lab.
    pub noise: f64,
}

impl Slice {
    /// Server CPU per answered request in µs.
    pub fn cpu_us_per_answer(&self) -> f64 {
        self.cpu_us as f64 / self.load.answers.max(1) as f64
    }
}

/// Runs load on a stack and measures what it costs. `beside` is what serves all stacks alike, a
/// database: told apart.
pub fn measure(
    stack: &Stack,
    beside: Option<&Group>,
    load: impl FnOnce(&Stack) -> Result<Load>,
) -> Result<Slice> {
    let beside_us = || beside.map_or(0, Group::cpu_us);
    stack.settle();
    let (ticks, cpu_us, beside_before_us) = (Ticks::now(), stack.group.cpu_us(), beside_us());
    let load = load(stack)?;
    let cpu_us = stack.group.cpu_us().saturating_sub(cpu_us);
    let beside_us = beside_us().saturating_sub(beside_before_us);
    let noise = Ticks::now().since(&ticks).taken_by_others(cpu_us + beside_us);
    Ok(Slice { load, cpu_us, beside_us, pss_bytes: stack.group.pss_bytes(), noise })
}

/// All slices of one stack, in order of rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// The stack's name.
    pub stack: &'static str,
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

    /// Answers per second, slice by slice.
    pub fn rates(&self) -> Vec<f64> {
        self.values(|slice| slice.load.rate())
    }

    /// Server CPU per answer in µs, slice by slice.
    pub fn cpu_us(&self) -> Vec<f64> {
        self.values(Slice::cpu_us_per_answer)
    }

    /// CPU per answer of what serves all stacks alike, in µs: the median.
    pub fn beside_us(&self) -> f64 {
        self.median(|slice| slice.beside_us as f64 / slice.load.answers.max(1) as f64)
    }

    /// Failures of all slices together.
    pub fn failures(&self) -> Failures {
        let mut sum = Failures::default();
        self.slices.iter().for_each(|slice| sum.add(&slice.load.failures));
        sum
    }

    /// Whether every request was answered well, and every slice had some.
    pub fn is_flawless(&self) -> bool {
        self.failures().total() == 0 && self.slices.iter().all(|slice| slice.load.answers > 0)
    }

    /// Share of requests that came over a connection that had answered before.
    pub fn keep_alive(&self) -> Option<f64> {
        let reused = self.slices.iter().map(|slice| slice.load.reused).sum::<Option<u64>>()?;
        let sent = self.answers() + self.failures().unanswered();
        Some(reused as f64 / sent.max(1) as f64)
    }

    /// Answers of all slices together.
    pub fn answers(&self) -> u64 {
        self.slices.iter().map(|slice| slice.load.answers).sum()
    }
}

/// Series of the same rounds.
pub struct Rounds {
    /// One series per stack, in the order given.
    pub series: Vec<Series>,
    /// Rounds taken again since the machine was busy.
    pub repeated: usize,
    /// Rounds kept although the machine was busy, since repeats had run out.
    pub noisy: usize,
}

impl Rounds {
    /// The series of a stack.
    pub fn of(&self, stack: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.stack == stack)
    }
}

/// How stacks take turns.
pub struct Turns<'a> {
    /// Slices per stack.
    pub slices: usize,
    /// What serves all stacks alike.
    pub beside: Option<&'a Group>,
}

/// Gives every stack `lab.effort.slices` slices in interleaved rounds, after one uncounted
/// round that warms them up.
pub fn interleave(
    lab: &Lab,
    stacks: &[&Stack],
    load: impl FnMut(&Stack) -> Result<Load>,
) -> Result<Rounds> {
    Turns { slices: lab.effort.slices, beside: None }.take(lab, stacks, load)
}

impl Turns<'_> {
    /// Gives every stack its slices, after one uncounted round that warms them up.
    pub fn take(
        &self,
        lab: &Lab,
        stacks: &[&Stack],
        mut load: impl FnMut(&Stack) -> Result<Load>,
    ) -> Result<Rounds> {
        for stack in stacks {
            check_some_answers(stack, &load(stack)?)?;
        }
        let empty = |stack: &&Stack| Series { stack: stack.name, slices: Vec::new() };
        let series = stacks.iter().map(empty).collect();
        let mut rounds = Rounds { series, repeated: 0, noisy: 0 };
        let mut round = 0;
        while round < self.slices {
            let mut slices = vec![None; stacks.len()];
            for index in order(round, stacks.len()) {
                slices[index] = Some(measure(stacks[index], self.beside, &mut load)?);
            }
            let slices: Vec<Slice> = slices.into_iter().flatten().collect();
            let noisy = slices.iter().any(|slice| slice.noise > NOISE_LIMIT);
            if noisy && rounds.repeated < self.slices / 2 {
                rounds.repeated += 1;
                continue;
            }
            rounds.noisy += usize::from(noisy);
            lab.progress(&line(round, stacks, &slices));
            let pairs = rounds.series.iter_mut().zip(slices);
            pairs.for_each(|(series, slice)| series.slices.push(slice));
            round += 1;
        }
        Ok(rounds)
    }
}

fn check_some_answers(stack: &Stack, load: &Load) -> Result<()> {
    if load.answers > 0 {
        return Ok(());
    }
    let what = format!("no answer while warming up; failures: {:?}", load.failures);
    Err(Error::Unexpected { who: stack.name.into(), what })
}

/// Who comes when in a round: rotated by the round, every other round backwards.
fn order(round: usize, stacks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..stacks).map(|at| (at + round / 2) % stacks).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn line(round: usize, stacks: &[&Stack], slices: &[Slice]) -> String {
    let cell = |(stack, slice): (&&Stack, &Slice)| {
        let (us, rate) = (slice.cpu_us_per_answer(), slice.load.rate());
        format!("{} {us:.2} µs, {rate:.0}/s", stack.name)
    };
    let cells: Vec<String> = stacks.iter().zip(slices).map(cell).collect();
    format!("round {:>2}: CPU per request: {}", round + 1, cells.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_comes_equally_often_at_every_place() {
        for stacks in 2..=4 {
            let mut count = vec![vec![0; stacks]; stacks];
            for round in 0..2 * stacks {
                for (place, stack) in order(round, stacks).into_iter().enumerate() {
                    count[stack][place] += 1;
                }
            }
            assert!(count.iter().flatten().all(|&times| times == 2), "{count:?}");
        }
    }
}
