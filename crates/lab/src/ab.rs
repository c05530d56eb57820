//! A against B: two sides of the user's choice, until the difference is known or given up.
//!
//! Called by `outboard lab ab`. Looks after 8, 16, 24 and 32 pairs, unless a number was asked for.
//! Invariant: what was refused is in the report as invalid, and never as an error of the program.

use std::path::PathBuf;
use std::time::Instant;

use crate::ask::Ask;
use crate::comparison::{Comparison, compare};
use crate::doctor;
use crate::error::{Error, Result};
use crate::generator;
use crate::http::{self, Answer};
use crate::lab::Lab;
use crate::metric::Metric;
use crate::profile;
use crate::report::{Report, State};
use crate::run;
use crate::side::Side;
use crate::slice::{Rounds, Turns};
use crate::stack::Stack;
use crate::statistics::judge::{Class, Question};
use crate::statistics::looks::Looks;

/// What to compare, and how.
#[derive(Debug, Clone)]
pub struct Duel {
    /// What there was.
    pub a: Side,
    /// What is judged against it.
    pub b: Side,
    /// The folder that stacks and binaries serve.
    pub root: PathBuf,
    /// The path asked for, of sides that are no URL.
    pub path: String,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// In what to compare.
    pub metrics: Vec<Metric>,
    /// The ratio up to which they count as equal, less one; each metric's own where `None`.
    pub theta: Option<f64>,
    /// When to look.
    pub looks: Looks,
    /// Settings that may differ, since they are what is compared.
    pub accepted: Vec<String>,
    /// Bodies may differ: pages with a clock or a token in them.
    pub any_body: bool,
}

/// Measures both sides in turns.
pub fn run(lab: &mut Lab, duel: &Duel, command: &str) -> Result<Report> {
    let mut report = run::empty(lab, command);
    let began = Instant::now();
    report.begin_named("ab", "B, judged against A.");
    let a = duel.a.start(lab, "A", &duel.root)?;
    let b = duel.b.start(lab, "B", &duel.root)?;
    let stacks = [&b, &a];
    match asks(duel, stacks) {
        Ok(asks) => {
            let refused = look_at_settings(duel, &mut report, stacks, &asks)?;
            match refused {
                Some(why) => report.conclude(State::Failed { why }),
                None => fight(lab, duel, &mut report, stacks, &asks)?,
            }
        }
        Err(error @ Error::DifferentBytes { .. }) => {
            report.conclude(State::Failed { why: error.to_string() });
        }
        Err(error) => return Err(error),
    }
    report.run.seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

/// What to ask B and A for, with the body that either has to answer.
fn asks(duel: &Duel, stacks: [&Stack; 2]) -> Result<[Ask; 2]> {
    let asks = [&duel.b, &duel.a].map(|side| {
        let (host, path) = side.target(&duel.path);
        Ask::get(path).to_host(host)
    });
    if duel.any_body {
        return Ok(asks);
    }
    // Twice each: an answer that changes by itself is as little comparable as two different ones.
    let mut answers: Vec<(&str, Answer)> = Vec::new();
    for _ in 0..2 {
        for (stack, ask) in stacks.iter().zip(&asks) {
            answers.push((stack.name, http::send(stack.address, ask)?));
        }
    }
    let first = &answers[0].1;
    if answers.iter().all(|(_, answer)| answer.status == 200 && answer == first) {
        return Ok(asks.map(|ask| ask.expecting_body(&first.body)));
    }
    let words = answers.iter().map(|(name, answer)| format!("{name}: {}", answer.summary()));
    Err(Error::DifferentBytes { path: duel.path.clone(), answers: words.collect() })
}

/// Why they must not be compared, if they are set up differently.
fn look_at_settings(
    duel: &Duel,
    report: &mut Report,
    stacks: [&Stack; 2],
    asks: &[Ask; 2],
) -> Result<Option<String>> {
    let mut matrix = doctor::compare(&stacks, asks)?;
    matrix.accept(&duel.accepted);
    let refusal = matrix.refusal();
    report.fairness = Some(matrix);
    Ok(refusal)
}

fn fight(
    lab: &Lab,
    duel: &Duel,
    report: &mut Report,
    stacks: [&Stack; 2],
    asks: &[Ask; 2],
) -> Result<()> {
    let seconds = lab.effort.slice_seconds;
    let load = |stack: &Stack| {
        let ask = if stack.name == stacks[0].name { &asks[0] } else { &asks[1] };
        generator::load(stack, ask, duel.connections, seconds)
    };
    let mut rounds = Rounds::default();
    let mut comparisons = Vec::new();
    for &pairs in &duel.looks.pairs {
        let more = Turns { slices: pairs - rounds.pairs(), beside: None };
        rounds.extend(more.only(lab, &stacks, load)?);
        comparisons =
            compare("A against B", &rounds, &duel.metrics, |metric| question(duel, metric));
        for comparison in &comparisons {
            lab.progress(&format!("after {pairs} pairs: {comparison}"));
        }
        if comparisons.iter().all(is_decided) {
            break;
        }
    }
    if lab.effort.takes_profiles {
        rounds.profiles = profile::of_stacks(lab, &stacks, load)?;
    }
    report.add_rows("A against B", &rounds);
    report.comparisons = comparisons;
    Ok(())
}

fn is_decided(comparison: &Comparison) -> bool {
    !matches!(comparison.class, Class::Undecided { .. })
}

fn question(duel: &Duel, metric: Metric) -> Question {
    let theta = duel.theta.unwrap_or(metric.theta()).ln_1p();
    Question { theta, alpha: duel.looks.alpha, lower_is_better: metric.lower_is_better() }
}
