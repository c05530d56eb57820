//! 15,000 requests a second over 4, 64 and 512 connections: what waits in threads of its own against
//! what has the whole server wait.

use super::{CONNECTIONS, SMALL_BUFFER, fill, get, launch, put};
use crate::error::Result;
use crate::experiment::NOT_BUILT;
use crate::generator;
use crate::lab::Lab;
use crate::load;
use crate::outboard;
use crate::report::Report;
use crate::site::Site;
use crate::slice::{Rounds, Slice, Turns};
use crate::stack::Stack;
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

pub(super) const RATE: f64 = 15_000.0;
const SYNCHRONOUS: &str = "outboard, synchronous";
const CROWDS: [usize; 3] = [CONNECTIONS, 4, 512];
/// The fewest pairs that decide upon a bar.
const PAIRS: usize = 5;

/// Measures; gives the asynchronous store for what follows, if there is a binary.
pub(super) fn run(lab: &mut Lab, report: &mut Report, site: &Site) -> Result<Option<Stack>> {
    let synchronously = format!("{SMALL_BUFFER}mode = \"synchronous\"\n");
    let asynchronous = launch(lab, site, outboard::NAME, SMALL_BUFFER)?;
    let synchronous = launch(lab, site, SYNCHRONOUS, &synchronously)?;
    let stacks: Vec<&Stack> = [&asynchronous, &synchronous].into_iter().flatten().collect();
    lab.progress("filling the stores");
    stacks.iter().try_for_each(|stack| fill(stack))?;
    for (word, ask, crowds) in [("PUT", put(), &CROWDS[..]), ("GET", get(), of_reads(lab, report))]
    {
        for &connections in crowds {
            let (turns, seconds) = turns(lab, connections);
            let rounds = turns.take(lab, &stacks, |stack| {
                generator::load_at(stack, &ask, connections, seconds, RATE)
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

/// In a quick run, which then says so, reads come over as many connections as the bars are about.
fn of_reads(lab: &Lab, report: &mut Report) -> &'static [usize] {
    if !lab.effort.is_quick() {
        return &CROWDS;
    }
    report.notes.push(format!("entity: quick, so GET at c = {CONNECTIONS} alone"));
    &CROWDS[..1]
}

/// In a quick run the crowds beside that of the bars get as little as decides.
fn turns(lab: &Lab, connections: usize) -> (Turns<'static>, f64) {
    let is_short = lab.effort.is_quick() && connections != CONNECTIONS;
    match is_short {
        true => (Turns { slices: PAIRS, beside: None }, lab.effort.short_slice_seconds()),
        false => (Turns { slices: slices(lab), beside: None }, lab.effort.slice_seconds),
    }
}

/// Of two stacks; six pairs are the fewest that tell one from the other.
pub(super) fn slices(lab: &Lab) -> usize {
    if lab.effort.is_quick() { 6 } else { lab.effort.slices }
}

fn judge(report: &mut Report, title: &str, rounds: &Rounds) {
    let (p99, p999) = (format!("{title}: p99 ≤ 2 ms"), format!("{title}: p99.9 ≤ 10 ms"));
    let rejected = format!("{title}: 0 rejected");
    let Some(series) = rounds.of(outboard::NAME) else {
        let missing = [p99, p999, rejected].map(|bar| Verdict::not_measured(&bar, NOT_BUILT));
        report.verdicts.extend(missing);
        return;
    };
    let measured = format!("{} answers, {}", series.answers(), series.failures());
    report.verdicts.extend([
        Verdict::at_most(&p99, 2.0, &series.values(p99_ms), "ms"),
        Verdict::at_most(&p999, 10.0, &series.values(p999_ms), "ms"),
        Verdict::exact(&rejected, series.is_flawless(), measured),
    ]);
}

/// Whether not to wait is worth anything at all.
fn gain(title: &str, rounds: &Rounds) -> Verdict {
    let bar = format!("{title}: p99 below that of the synchronous store");
    let (Some(one), Some(other)) = (rounds.of(outboard::NAME), rounds.of(SYNCHRONOUS)) else {
        return Verdict::not_measured(&bar, NOT_BUILT);
    };
    Verdict::ratio(&bar, 1.0, paired_ratio(&one.values(p99_ms), &other.values(p99_ms)))
}

fn p99_ms(slice: &Slice) -> f64 {
    slice.load.latency.p99_us / 1e3
}

fn p999_ms(slice: &Slice) -> f64 {
    let place = load::QUANTILES.iter().position(|quantile| *quantile == 0.999);
    let us = place.and_then(|place| slice.load.spectrum_us.get(place));
    us.map_or(f64::NAN, |us| us / 1e3)
}
