//! 15,000 requests per second over 4, 64 and 512 connections: a store that waits in its own threads
//! against one that blocks the whole server.

use super::store::{CONNECTIONS, SMALL_BUFFER, fill, get, launch, put};
use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::load;
use crate::outboard::{self, NOT_BUILT};
use crate::report::Report;
use crate::series::Slice;
use crate::site::Site;
use crate::slice::{Rounds, Turns};
use crate::stack::Stack;
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

pub(super) const RATE: f64 = 15_000.0;
const SYNCHRONOUS: &str = "outboard, synchronous";
const CONNECTION_COUNTS: [usize; 3] = [CONNECTIONS, 4, 512];
/// The fewest pairs that decide a target.
const PAIRS: usize = 5;

/// Measures and returns the asynchronous store for later rows, if there is a binary.
pub(super) fn run(lab: &mut Lab, report: &mut Report, site: &Site) -> Result<Option<Stack>> {
    let synchronously = format!("{SMALL_BUFFER}mode = \"synchronous\"\n");
    let asynchronous = launch(lab, site, outboard::NAME, SMALL_BUFFER)?;
    let synchronous = launch(lab, site, SYNCHRONOUS, &synchronously)?;
    let stacks: Vec<&Stack> = [&asynchronous, &synchronous].into_iter().flatten().collect();
    lab.progress("filling the stores");
    stacks.iter().try_for_each(|stack| fill(stack))?;
    for (word, request, counts) in
        [("PUT", put(), &CONNECTION_COUNTS[..]), ("GET", get(), of_reads(lab, report))]
    {
        for &connections in counts {
            let (turns, seconds) = turns(lab, connections);
            let rounds = turns.take(lab, &stacks, |stack| {
                generator::load_at(stack, &request, connections, seconds, RATE)
            })?;
            let title = format!("{word} 15,000/s c={connections}");
            report.add_rounds(&title, &rounds);
            if connections == CONNECTIONS {
                judge(report, &title, &rounds);
            }
            report.verdicts.push(gain(&title, &rounds));
        }
    }
    Ok(asynchronous)
}

/// In a quick run, reads use only the connections of the targets, with a note.
fn of_reads(lab: &Lab, report: &mut Report) -> &'static [usize] {
    if !lab.effort.is_quick() {
        return &CONNECTION_COUNTS;
    }
    report.notes.push(format!("entity: quick, so GET at c = {CONNECTIONS} alone"));
    &CONNECTION_COUNTS[..1]
}

/// In a quick run, other numbers of connections get as few pairs as decide.
fn turns(lab: &Lab, connections: usize) -> (Turns<'static>, f64) {
    let is_short = lab.effort.is_quick() && connections != CONNECTIONS;
    match is_short {
        true => (Turns { slices: PAIRS, shared: None }, lab.effort.short_slice_seconds()),
        false => (Turns { slices: slices(lab), shared: None }, lab.effort.slice_seconds),
    }
}

/// For two stacks; six pairs are the fewest that distinguish them.
pub(super) fn slices(lab: &Lab) -> usize {
    if lab.effort.is_quick() { 6 } else { lab.effort.slices }
}

fn judge(report: &mut Report, title: &str, rounds: &Rounds) {
    let (p99, p999) = (format!("{title}: p99 ≤ 2 ms"), format!("{title}: p99.9 ≤ 10 ms"));
    let rejected = format!("{title}: 0 rejected");
    let Some(series) = rounds.of(outboard::NAME) else {
        let missing = [p99, p999, rejected].map(|target| Verdict::not_measured(&target, NOT_BUILT));
        report.verdicts.extend(missing);
        return;
    };
    let measured = format!("{} responses, {} failed", series.responses(), series.failures());
    report.verdicts.extend([
        Verdict::at_most(&p99, 2.0, &series.values(p99_ms), "ms"),
        Verdict::at_most(&p999, 10.0, &series.values(p999_ms), "ms"),
        Verdict::exact(&rejected, series.is_flawless(), measured),
    ]);
}

/// Whether waiting in other threads pays at all.
fn gain(title: &str, rounds: &Rounds) -> Verdict {
    let target = format!("{title}: p99 below that of the synchronous store");
    let (Some(one), Some(other)) = (rounds.of(outboard::NAME), rounds.of(SYNCHRONOUS)) else {
        return Verdict::not_measured(&target, NOT_BUILT);
    };
    Verdict::ratio(&target, 1.0, paired_ratio(&one.values(p99_ms), &other.values(p99_ms)))
}

fn p99_ms(slice: &Slice) -> f64 {
    slice.load.latency.p99_us / 1e3
}

fn p999_ms(slice: &Slice) -> f64 {
    let place = load::QUANTILES.iter().position(|quantile| *quantile == 0.999);
    let us = place.and_then(|place| slice.load.spectrum_us.get(place));
    us.map_or(f64::NAN, |us| us / 1e3)
}
