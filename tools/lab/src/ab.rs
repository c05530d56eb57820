//! A against B: compares two variants of the user's choice until the difference is known or the
//! looks are used up.
//!
//! Called by `outboard lab ab`. It looks after 8, 16, 24 and 32 pairs, unless a number is given.
//! Invariant: a refused comparison is in the report as invalid and is never an error of the
//! program.

use std::path::PathBuf;
use std::time::Instant;

use crate::comparison::{Comparison, compare};
use crate::doctor;
use crate::error::{Error, Result};
use crate::generator;
use crate::http::{self, Response};
use crate::lab::Lab;
use crate::metric::Metric;
use crate::profile;
use crate::report::{Report, State};
use crate::request_spec::RequestSpec;
use crate::run;
use crate::slice::{Rounds, Turns};
use crate::stack::Stack;
use crate::statistics::judge::{Class, Question};
use crate::statistics::looks::Looks;
use crate::variant::Variant;

/// The variants and how to compare them.
#[derive(Debug, Clone)]
pub struct AbTest {
    /// The reference.
    pub a: Variant,
    /// The variant that is judged against it.
    pub b: Variant,
    /// The directory that stacks and binaries serve.
    pub root: PathBuf,
    /// The path requested from variants that are no URL.
    pub path: String,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// The metrics to compare.
    pub metrics: Vec<Metric>,
    /// The ratio up to which they count as equal, less one; `None` for each metric's own.
    pub theta: Option<f64>,
    /// The looks.
    pub looks: Looks,
    /// Settings that may differ, since they are compared.
    pub accepted: Vec<String>,
    /// Whether bodies may differ, as in pages with a clock or a token.
    pub any_body: bool,
}

/// Measures both variants in turns.
pub fn run(lab: &mut Lab, test: &AbTest, command: &str) -> Result<Report> {
    let mut report = run::empty(lab, command);
    let began = Instant::now();
    report.begin("ab", "B, judged against A.");
    let a = test.a.start(lab, "A", &test.root)?;
    let b = test.b.start(lab, "B", &test.root)?;
    let stacks = [&b, &a];
    match requests(test, stacks) {
        Ok(requests) => {
            let refused = look_at_settings(test, &mut report, stacks, &requests)?;
            match refused {
                Some(why) => report.conclude(State::Failed { why }),
                None => measure_both(lab, test, &mut report, stacks, &requests)?,
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

/// The requests for B and A, with the body that both must return.
fn requests(test: &AbTest, stacks: [&Stack; 2]) -> Result<[RequestSpec; 2]> {
    let requests = [&test.b, &test.a].map(|variant| {
        let (host, path) = variant.target(&test.path);
        RequestSpec::get(path).to_host(host)
    });
    if test.any_body {
        return Ok(requests);
    }
    // Twice each: a response that changes by itself is no basis for a comparison either.
    let mut responses: Vec<(&str, Response)> = Vec::new();
    for _ in 0..2 {
        for (stack, request) in stacks.iter().zip(&requests) {
            responses.push((stack.name, http::send(stack.address, request)?));
        }
    }
    let first = &responses[0].1;
    if responses.iter().all(|(_, response)| response.status == 200 && response == first) {
        return Ok(requests.map(|request| request.expecting_body(&first.body)));
    }
    let words = responses.iter().map(|(name, response)| format!("{name}: {}", response.summary()));
    Err(Error::DifferentBytes { path: test.path.clone(), responses: words.collect() })
}

/// Why they must not be compared, if their settings differ.
fn look_at_settings(
    test: &AbTest,
    report: &mut Report,
    stacks: [&Stack; 2],
    requests: &[RequestSpec; 2],
) -> Result<Option<String>> {
    let mut matrix = doctor::compare(&stacks, requests)?;
    matrix.accept(&test.accepted);
    let refusal = matrix.refusal();
    report.fairness = Some(matrix);
    Ok(refusal)
}

fn measure_both(
    lab: &Lab,
    test: &AbTest,
    report: &mut Report,
    stacks: [&Stack; 2],
    requests: &[RequestSpec; 2],
) -> Result<()> {
    let seconds = lab.effort.slice_seconds;
    let load = |stack: &Stack| {
        let request = if stack.name == stacks[0].name { &requests[0] } else { &requests[1] };
        generator::load(stack, request, test.connections, seconds)
    };
    let mut rounds = Rounds::default();
    let mut comparisons = Vec::new();
    for &pairs in &test.looks.pairs {
        let more = Turns { slices: pairs - rounds.pairs(), shared: None };
        rounds.extend(more.only(lab, &stacks, load)?);
        comparisons =
            compare("A against B", &rounds, &test.metrics, |metric| question(test, metric));
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

fn question(test: &AbTest, metric: Metric) -> Question {
    let theta = test.theta.unwrap_or(metric.theta()).ln_1p();
    Question { theta, alpha: test.looks.alpha, lower_is_better: metric.lower_is_better() }
}
