//! Two stacks in one metric: the ratio, its pairs and the conclusion.
//!
//! Computed from [`Rounds`] by the report and by `lab ab`. Invariant: a comparison that a
//! [`Refusal`] forbids is invalid, whatever its numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::refusal::Refusal;
use crate::series::Series;
use crate::slice::Rounds;
use crate::statistics::judge::{Class, Question};
use crate::statistics::{Estimate, holm, log_ratios, middle, signed_rank};

/// One comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comparison {
    /// The experiment and its settings.
    pub experiment: String,
    /// The stack that the class describes.
    pub subject: String,
    /// The stack that it is compared with.
    pub reference: String,
    /// The metric.
    pub metric: Metric,
    /// `subject / reference`.
    pub ratio: Option<Estimate>,
    /// The logarithm of the ratio, pair by pair.
    pub differences: Vec<f64>,
    /// The exact probability of such differences between equals.
    pub p: f64,
    /// The same after Holm's correction for the family.
    pub p_adjusted: f64,
    /// The conclusion.
    pub class: Class,
}

/// Compares the first stack of the rounds with each of the others in these metrics. The comparisons
/// are one family: the chance of any false difference among them is the question's level.
pub fn compare(
    experiment: &str,
    rounds: &Rounds,
    metrics: &[Metric],
    question: impl Fn(Metric) -> Question,
) -> Vec<Comparison> {
    let Some((subject, references)) = rounds.series.split_first() else { return Vec::new() };
    let in_each = |reference| {
        metrics.iter().map(move |&metric| plain(experiment, subject, reference, metric))
    };
    let mut family: Vec<Comparison> = references.iter().flat_map(in_each).collect();
    let probabilities: Vec<f64> = family.iter().map(|comparison| comparison.p).collect();
    for (comparison, adjusted) in family.iter_mut().zip(holm::adjust(&probabilities)) {
        comparison.p_adjusted = adjusted;
        if !matches!(comparison.class, Class::Invalid { .. }) {
            let question = question(comparison.metric);
            comparison.class = question.judge_with(&comparison.differences, adjusted);
        }
    }
    family
}

/// The question of reports: 5 %, and the metric's margin of equality.
pub fn usual_question(metric: Metric) -> Question {
    let theta = metric.theta().ln_1p();
    Question { theta, alpha: 0.05, lower_is_better: metric.lower_is_better() }
}

/// A comparison before it is judged: undecided, or invalid if it must not be made.
fn plain(experiment: &str, subject: &Series, reference: &Series, metric: Metric) -> Comparison {
    let differences = log_ratios(&metric.values(subject), &metric.values(reference));
    let refused = [subject, reference].into_iter().find_map(|series| {
        let refusal = Refusal::of_series(series).filter(|refusal| refusal.forbids(metric));
        refusal.map(|refusal| format!("{}: {refusal}", series.stack))
    });
    let nothing = || format!("{} was not measured in every slice", metric.name());
    let class = match refused.or_else(|| differences.is_none().then(nothing)) {
        Some(why) => Class::Invalid { why },
        None => Class::Undecided { more_pairs: None },
    };
    let differences = differences.unwrap_or_default();
    let p = signed_rank::p_value(&differences);
    Comparison {
        experiment: experiment.into(),
        subject: subject.stack.clone(),
        reference: reference.stack.clone(),
        metric,
        ratio: middle(&differences).map(Estimate::exp),
        differences,
        p,
        p_adjusted: p,
        class,
    }
}

/// One sentence: which stack is better or worse in what, by how much, and how certain that is.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, reference, metric, class, .. } = self;
        let name = metric.name();
        match class {
            Class::Better | Class::Worse => {
                let word = if *class == Class::Better { "better" } else { "worse" };
                write!(f, "{name}: {subject} is {word} than {reference}")?;
            }
            Class::Equal => write!(
                f,
                "{name}: {subject} equals {reference} within ±{:.0} %",
                metric.theta() * 100.0
            )?,
            Class::Undecided { more_pairs: Some(more) } => {
                let words = format!("undecided, about {more} more pairs would decide");
                write!(f, "{name} against {reference}: {words}")?;
            }
            Class::Undecided { more_pairs: None } => {
                write!(f, "{name} against {reference}: undecided")?;
            }
            Class::Invalid { why } => {
                return write!(f, "{name} against {reference}: invalid: {why}");
            }
        }
        match self.ratio {
            Some(ratio) => write!(
                f,
                ", {} [{}, {}] ({} pairs, p = {})",
                change(ratio.middle),
                change(ratio.low),
                change(ratio.high),
                self.differences.len(),
                probability(self.p_adjusted)
            ),
            None => Ok(()),
        }
    }
}

/// A ratio for readers: `−3.1 %`, `+12 %`, `× 5.2`.
pub fn change(ratio: f64) -> String {
    match (ratio - 1.0) * 100.0 {
        _ if ratio >= 2.0 => format!("× {}", figures(ratio)),
        _ if ratio > 0.0 && ratio <= 0.5 => format!("1/{}", figures(1.0 / ratio)),
        percent if percent < 0.0 => format!("−{} %", figures(-percent)),
        percent => format!("+{} %", figures(percent)),
    }
}

/// Two digits, or all digits of a whole number.
fn figures(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "0.0001 or less".into() } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Failure, Latency, Load};
    use crate::series::Slice;

    /// Rounds of stacks with this cost in µs per request, a little noise and equal rates.
    fn rounds(stacks: &[(&str, f64)], slices: usize) -> Rounds {
        let slice = |us: f64, at: usize| {
            let wobble =
                1.0 + 0.002 * ((at * 7 % 5) as f64 - 2.0) + 0.0003 * us * at as f64 / 100.0;
            let latency = Latency { p99_us: 900.0 * wobble, ..Latency::default() };
            let load = Load { responses: 1_000, seconds: 1.0, latency, ..Load::default() };
            let cpu_us = (us * 1_000.0 * wobble) as u64;
            Slice { load, cpu_us, machine_us: 2_000_000, ..Slice::default() }
        };
        let series = |(name, us): &(&str, f64)| Series {
            stack: (*name).into(),
            slices: (0..slices).map(|at| slice(*us, at)).collect(),
        };
        Rounds { series: stacks.iter().map(series).collect(), ..Rounds::default() }
    }

    fn classes(rounds: &Rounds) -> Vec<&'static str> {
        let all = compare("test", rounds, &Metric::ALL, usual_question);
        all.iter().map(|comparison| comparison.class.word()).collect()
    }

    #[test]
    fn the_first_stack_is_compared_with_each_other_per_metric() {
        let rounds = rounds(&[("ours", 50.0), ("theirs", 80.0), ("twin", 50.0)], 12);
        assert_eq!(classes(&rounds), ["better", "equal", "equal", "equal", "equal", "equal"]);
    }

    #[test]
    fn a_refused_stack_is_not_ranked() {
        let mut rounds = rounds(&[("ours", 50.0), ("theirs", 80.0)], 12);
        rounds.series[1].slices[3].load.failures.add(Failure::Body);
        assert_eq!(classes(&rounds), ["invalid"; 3]);
    }

    #[test]
    fn a_saturated_client_leaves_the_cost_of_a_request() {
        let mut rounds = rounds(&[("ours", 50.0), ("theirs", 80.0)], 12);
        rounds.series[0].slices.iter_mut().for_each(|slice| slice.load.client_us = 990_000);
        assert_eq!(classes(&rounds), ["better", "invalid", "invalid"]);
    }

    #[test]
    fn two_comparisons_need_seven_pairs() {
        let stacks = [("ours", 50.0), ("theirs", 80.0), ("third", 90.0)];
        let [six, seven] = [6, 7].map(|slices| {
            compare("test", &rounds(&stacks, slices), &[Metric::Cpu], usual_question)
        });
        assert_eq!(six[0].class, Class::Undecided { more_pairs: Some(1) });
        assert_eq!([&seven[0].class, &seven[1].class], [&Class::Better; 2]);
    }

    #[test]
    fn changes_are_written_for_readers() {
        let words = [0.969, 1.12, 5.21, 0.2].map(change);
        assert_eq!(words, ["−3.1 %", "+12 %", "× 5.2", "1/5.0"]);
    }
}
