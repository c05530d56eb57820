//! A against A: the noise of this machine and the smallest effect that it can show.
//!
//! Called by `outboard lab calibrate`. Two instances of one stack are compared like any two stacks.
//! Any difference found is false, and the widths of the intervals show which effects could be
//! found.

use std::path::Path;
use std::time::Instant;

use crate::catalog::Kind;
use crate::comparison::{Comparison, compare, usual_question};
use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::metric::Metric;
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::run;
use crate::site::{HELLO, Site};
use crate::slice::Turns;
use crate::stack::{Stack, check_same_responses};
use crate::statistics::judge::Class;
use crate::statistics::{median, middle, power};
use crate::variant::Variant;
use crate::verdict::Verdict;

const CONNECTIONS: usize = 20;

/// The properties of this machine.
pub struct Calibration {
    /// The number of comparisons of equals.
    pub times: usize,
    /// Comparisons in which any metric showed a difference.
    pub false_verdicts: usize,
    /// The smallest effect that this number of pairs shows, by metric: a ratio less one.
    pub smallest: Vec<(Metric, f64)>,
    /// Rows, comparisons and a summary.
    pub report: Report,
}

/// Compares a stack with itself this many times.
pub fn run(lab: &mut Lab, kind: Kind, times: usize, command: &str) -> Result<Calibration> {
    let mut report = run::empty(lab, command);
    let began = Instant::now();
    let site = Site::write(lab)?;
    let stacks = [start(lab, kind, "A", &site.root)?, start(lab, kind, "A again", &site.root)?];
    let stacks: Vec<&Stack> = stacks.iter().collect();
    let request = RequestSpec::get(HELLO).expecting(check_same_responses(&stacks, HELLO)?);
    let seconds = lab.effort.slice_seconds;
    report.begin("calibrate", &format!("{} against itself.", kind.name()));
    for time in 1..=times {
        let turns = Turns { slices: lab.effort.slices, shared: None };
        let load = |stack: &Stack| generator::load(stack, &request, CONNECTIONS, seconds);
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
    Variant::Stack(kind).start(lab, name, root)
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

/// The level of 5 % allows one false verdict in twenty.
fn verdict(report: &Report, times: usize, false_verdicts: usize) -> Verdict {
    let allowed = times / 20;
    let target = format!("A against A, {times} times: at most {allowed} false verdicts");
    let is_valid = |c: &Comparison| !matches!(c.class, Class::Invalid { .. });
    let judged = report.comparisons.chunk_by(|a, b| a.experiment == b.experiment);
    let judged = judged.filter(|time| time.iter().any(is_valid)).count();
    let measured = format!("{false_verdicts} in {judged} that could be judged");
    if judged < times && false_verdicts <= allowed {
        return Verdict::not_measured(&target, &measured);
    }
    Verdict::exact(&target, false_verdicts <= allowed, measured)
}

/// The median over the comparisons, each by the width of its own interval.
fn smallest(report: &Report, metric: Metric) -> f64 {
    let of_metric = report.comparisons.iter().filter(|comparison| comparison.metric == metric);
    let intervals = of_metric.filter_map(|comparison| middle(&comparison.differences));
    let effects: Vec<f64> =
        intervals.map(|interval| power::smallest_effect(&interval, 0.05).exp_m1()).collect();
    median(&effects)
}
