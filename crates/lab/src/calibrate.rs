//! A against A: the noise of this machine, and the smallest effect that it can show.
//!
//! Called by `outboard lab calibrate`. Two instances of one stack are compared as any two would
//! be. Whatever difference is found is false; how wide the intervals are says what could be found.

use std::path::Path;
use std::time::Instant;

use crate::ask::Ask;
use crate::catalog::Kind;
use crate::comparison::{Comparison, compare, usual_question};
use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::metric::Metric;
use crate::report::Report;
use crate::run;
use crate::side::Side;
use crate::site::{HELLO, Site};
use crate::slice::Turns;
use crate::stack::{Stack, check_same_answers};
use crate::statistics::judge::Class;
use crate::statistics::{median, middle, power};
use crate::verdict::Verdict;

const CONNECTIONS: usize = 20;

/// What was found about the machine.
pub struct Calibration {
    /// Comparisons of equals.
    pub times: usize,
    /// Those in which a difference was seen in any metric.
    pub false_verdicts: usize,
    /// The smallest effect that so many pairs show, by metric: a ratio less one.
    pub smallest: Vec<(Metric, f64)>,
    /// Rows, comparisons, and this in words.
    pub report: Report,
}

/// Compares a stack with itself so many times.
pub fn run(lab: &mut Lab, kind: Kind, times: usize, command: &str) -> Result<Calibration> {
    let mut report = run::empty(lab, command);
    let began = Instant::now();
    let site = Site::write(lab)?;
    let stacks = [start(lab, kind, "A", &site.root)?, start(lab, kind, "A again", &site.root)?];
    let stacks: Vec<&Stack> = stacks.iter().collect();
    let ask = Ask::get(HELLO).expecting(check_same_answers(&stacks, HELLO)?);
    let seconds = lab.effort.slice_seconds;
    report.begin_named("calibrate", &format!("{} against itself.", kind.name()));
    for time in 1..=times {
        let turns = Turns { slices: lab.effort.slices, beside: None };
        let load = |stack: &Stack| generator::load(stack, &ask, CONNECTIONS, seconds);
        let rounds = turns.take(lab, &stacks, load)?;
        let title = format!("A against A, {time} of {times}");
        report.add_rows(&title, &rounds);
        report.comparisons.extend(compare(&title, &rounds, &Metric::ALL, usual_question));
    }
    report.run.seconds = began.elapsed().as_secs_f64();
    let calibration = conclude(lab, times, report);
    Ok(calibration)
}

fn start(lab: &mut Lab, kind: Kind, name: &'static str, root: &Path) -> Result<Stack> {
    Side::Stack(kind).start(lab, name, root)
}

fn conclude(lab: &Lab, times: usize, mut report: Report) -> Calibration {
    let differs = |c: &&Comparison| matches!(c.class, Class::Better | Class::Worse);
    let mut false_ones: Vec<&str> =
        report.comparisons.iter().filter(differs).map(|c| c.experiment.as_str()).collect();
    false_ones.dedup();
    let false_verdicts = false_ones.len();
    let smallest: Vec<(Metric, f64)> =
        Metric::ALL.into_iter().map(|metric| (metric, smallest(&report, metric))).collect();
    let effects: Vec<String> = smallest
        .iter()
        .map(|(metric, effect)| format!("{} {:.1} %", metric.name(), effect * 100.0))
        .collect();
    report.notes.push(format!(
        "the smallest effect that {} pairs of {} s show here: {}",
        lab.effort.slices,
        lab.effort.slice_seconds,
        effects.join(", ")
    ));
    report.notes.push(format!("A against A, {times} times: {false_verdicts} false verdicts"));
    report.verdicts.push(verdict(&report, times, false_verdicts));
    Calibration { times, false_verdicts, smallest, report }
}

/// One false verdict in twenty is what the level of 5 % allows.
fn verdict(report: &Report, times: usize, false_verdicts: usize) -> Verdict {
    let allowed = times / 20;
    let bar = format!("A against A, {times} times: at most {allowed} false verdicts");
    let is_valid = |c: &Comparison| !matches!(c.class, Class::Invalid { .. });
    let judged = report.comparisons.chunk_by(|a, b| a.experiment == b.experiment);
    let judged = judged.filter(|time| time.iter().any(is_valid)).count();
    let measured = format!("{false_verdicts} in {judged} that could be judged");
    if judged < times && false_verdicts <= allowed {
        return Verdict::not_measured(&bar, &measured);
    }
    Verdict::exact(&bar, false_verdicts <= allowed, measured)
}

/// The median over the comparisons, each judged by the width of its own interval.
fn smallest(report: &Report, metric: Metric) -> f64 {
    let of_metric = report.comparisons.iter().filter(|comparison| comparison.metric == metric);
    let intervals = of_metric.filter_map(|comparison| middle(&comparison.differences));
    let effects: Vec<f64> =
        intervals.map(|interval| power::smallest_effect(&interval, 0.05).exp_m1()).collect();
    median(&effects)
}
