//! Outboard against peers in many workloads: whether it answers all, fails none and is faster in each.
//!
//! Slices of such experiments are short and few, so a comparison counts only if the slices of two
//! stacks do not overlap.

use crate::error::Result;
use crate::experiment::quick::connection_counts;
use crate::generator;
use crate::group::Group;
use crate::lab::Lab;
use crate::load::Failures;
use crate::outboard::{self, NOT_BUILT};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::series::Series;
use crate::slice::{Rounds, Turns};
use crate::stack::Stack;
use crate::verdict::{Outcome, Verdict};

/// The ratio from which two single slices count as faster or slower.
const APART: f64 = 1.1;

/// The workloads measured so far, by title.
pub(super) struct Comparison<'a> {
    /// What is compared, for the verdicts.
    pub(super) subject: &'static str,
    pub(super) turns: Turns<'a>,
    pub(super) seconds: f64,
    /// Numbers of connections.
    pub(super) counts: &'a [usize],
    pub(super) measured: Vec<(String, Rounds)>,
    /// Workloads whose responses differ between the stacks.
    pub(super) unequal: Vec<&'static str>,
}

impl<'a> Comparison<'a> {
    /// Nothing is measured yet. `shared` are the processes that all stacks use, such as a database.
    pub(super) fn new(
        lab: &Lab,
        report: &mut Report,
        subject: &'static str,
        shared: &'a Group,
        counts: &'a [usize],
    ) -> Self {
        let full = !lab.effort.is_quick();
        Self {
            subject,
            turns: Turns { slices: if full { 3 } else { 1 }, shared: Some(shared) },
            seconds: if full { 1.0 } else { 0.4 },
            counts: connection_counts(lab, report, counts),
            measured: Vec::new(),
            unequal: Vec::new(),
        }
    }

    /// Measures a workload with each number of connections.
    pub(super) fn measure(
        &mut self,
        lab: &mut Lab,
        report: &mut Report,
        name: &str,
        stacks: &[&Stack],
        request: &RequestSpec,
    ) -> Result<()> {
        for &connections in self.counts {
            let title = format!("{name} c={connections}");
            lab.progress(&title);
            let rounds = self.turns.take(lab, stacks, |stack| {
                generator::load(stack, request, connections, self.seconds)
            })?;
            report.add_rounds(&title, &rounds);
            self.measured.push((title, rounds));
        }
        Ok(())
    }

    /// Adds the verdicts about all workloads.
    pub(super) fn report(&self, report: &mut Report, peers: &[Stack]) {
        let (subject, measured) = (self.subject, &self.measured);
        report.verdicts.push(run_verdict(subject, &self.unequal));
        report.verdicts.push(failures_verdict(subject, measured));
        let faster = peers.iter().map(|peer| faster_verdict(subject, measured, peer.name));
        report.verdicts.extend(faster);
    }
}

/// Whether all workloads have equal responses; `unequal` has the names of the others.
fn run_verdict(subject: &str, unequal: &[&str]) -> Verdict {
    let measured = match unequal {
        [] => "all".to_owned(),
        names => format!("not compared, since the responses differ: {}", names.join(", ")),
    };
    let target = format!("{subject}: every one runs, with equal responses");
    Verdict::exact(&target, unequal.is_empty(), measured)
}

/// Whether no request to outboard failed.
fn failures_verdict(subject: &str, all: &[(String, Rounds)]) -> Verdict {
    let target = format!("{subject}: 0 failed requests in any");
    let series: Vec<&Series> = all.iter().filter_map(|(_, r)| r.of(outboard::NAME)).collect();
    if series.is_empty() {
        return Verdict::not_measured(&target, NOT_BUILT);
    }
    let mut failures = Failures::default();
    series.iter().for_each(|series| failures += series.failures());
    let responses: u64 = series.iter().map(|series| series.responses()).sum();
    let flawless = series.iter().all(|series| series.is_flawless());
    Verdict::exact(&target, flawless, format!("{responses} responses, {failures} failed"))
}

/// Whether outboard has a higher rate than a peer in every workload.
fn faster_verdict(subject: &str, all: &[(String, Rounds)], peer: &str) -> Verdict {
    let target = format!("{subject}: faster than {peer} in every one");
    let mut times = Vec::new();
    let (mut slower, mut unclear) = (Vec::new(), Vec::new());
    for (title, rounds) in all {
        let (Some(subject), Some(peer)) = (rounds.of(outboard::NAME), rounds.of(peer)) else {
            return Verdict::not_measured(&target, NOT_BUILT);
        };
        let rate = |series: &Series| series.median(|slice| slice.load.rate());
        times.push(rate(subject) / rate(peer));
        match compare(&subject.rates(), &peer.rates()) {
            Outcome::Pass => {}
            Outcome::Fail => slower.push(title.as_str()),
            _ => unclear.push(title.as_str()),
        }
    }
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    let list = |word: &str, titles: &[&str]| match titles {
        [] => String::new(),
        titles => format!("; {word}: {}", titles.join(", ")),
    };
    let words = [list("slower", &slower), list("unclear", &unclear)].concat();
    let measured = format!("{least:.2} to {most:.0} times as fast{words}");
    let outcome = match (slower.is_empty(), unclear.is_empty()) {
        (false, _) => Outcome::Fail,
        (true, false) => Outcome::Undecided,
        (true, true) => Outcome::Pass,
    };
    Verdict { target, measured, outcome, ratio: None }
}

/// Faster, slower, or undecided: the slices of the two must not overlap. One slice of each shows no
/// scatter, so these have to differ by a ratio.
fn compare(subject: &[f64], peer: &[f64]) -> Outcome {
    let apart = if subject.len() > 1 { 1.0 } else { APART };
    let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    match () {
        () if least(subject) > most(peer) * apart => Outcome::Pass,
        () if most(subject) * apart < least(peer) => Outcome::Fail,
        () => Outcome::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_overlap_decide_nothing() {
        assert_eq!(compare(&[10.0, 12.0], &[5.0, 9.0]), Outcome::Pass);
        assert_eq!(compare(&[10.0, 12.0], &[11.0, 9.0]), Outcome::Undecided);
        assert_eq!(compare(&[1.0, 2.0], &[3.0, 9.0]), Outcome::Fail);
    }

    #[test]
    fn single_slices_have_to_lie_apart() {
        assert_eq!(compare(&[10.0], &[9.8]), Outcome::Undecided);
        assert_eq!(compare(&[9.8], &[10.0]), Outcome::Undecided);
        assert_eq!(compare(&[10.0], &[5.0]), Outcome::Pass);
        assert_eq!(compare(&[5.0], &[10.0]), Outcome::Fail);
    }
}
