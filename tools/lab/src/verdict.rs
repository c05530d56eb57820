//! A target, the measurement and the outcome.
//!
//! Created by experiments, printed by [`crate::table`], turned into the exit code by the report.
//! Invariant: a ratio passes or fails only if its whole interval is on one side of the target.

use serde::{Deserialize, Serialize};

use crate::statistics::{Estimate, middle};

/// The outcome of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The target is met.
    Pass,
    /// The target is missed.
    Fail,
    /// The interval includes the limit, so more slices are needed.
    Undecided,
    /// Nothing was measured.
    NotMeasured,
}

impl Outcome {
    /// The word for the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Undecided => "undecided",
            Self::NotMeasured => "not measured",
        }
    }
}

/// One row of the table of targets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    /// The condition, with its unit.
    pub target: String,
    /// The measurement.
    pub measured: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The estimate, if any.
    pub ratio: Option<Estimate>,
}

impl Verdict {
    /// A paired ratio that may not exceed `limit`.
    pub fn ratio(target: &str, limit: f64, ratio: Option<Estimate>) -> Self {
        Self::of(target, Bound::AtMost(limit), ratio, ratio_words)
    }

    /// A paired ratio that may not fall below `limit`.
    pub fn ratio_at_least(target: &str, limit: f64, ratio: Option<Estimate>) -> Self {
        Self::of(target, Bound::AtLeast(limit), ratio, ratio_words)
    }

    /// A paired ratio that may differ from 1 by at most `share`.
    pub fn agreement(target: &str, share: f64, ratio: Option<Estimate>) -> Self {
        Self::of(target, Bound::Around(share), ratio, ratio_words)
    }

    /// A value per slice that may not exceed `limit`, in `unit`.
    pub fn at_most(target: &str, limit: f64, values: &[f64], unit: &str) -> Self {
        let words = |estimate: &Estimate| value_words(estimate, unit);
        Self::of(target, Bound::AtMost(limit), middle(values), words)
    }

    /// A value per slice that may not fall below `limit`, in `unit`.
    pub fn at_least(target: &str, limit: f64, values: &[f64], unit: &str) -> Self {
        let words = |estimate: &Estimate| value_words(estimate, unit);
        Self::of(target, Bound::AtLeast(limit), middle(values), words)
    }

    /// A share with an interval that may not exceed `limit`, with the underlying numbers.
    pub fn share_at_most(target: &str, limit: f64, share: Estimate, measured: String) -> Self {
        let outcome = Bound::AtMost(limit).judge(&share);
        Self { target: target.into(), measured, outcome, ratio: Some(share) }
    }

    fn of(
        target: &str,
        bound: Bound,
        estimate: Option<Estimate>,
        words: impl Fn(&Estimate) -> String,
    ) -> Self {
        let Some(estimate) = estimate else { return Self::not_measured(target, "no slices") };
        let measured = words(&estimate);
        let outcome = bound.judge(&estimate);
        Self { target: target.into(), measured, outcome, ratio: Some(estimate) }
    }

    /// A plain condition with its numbers.
    pub fn exact(target: &str, holds: bool, measured: String) -> Self {
        let outcome = if holds { Outcome::Pass } else { Outcome::Fail };
        Self { target: target.into(), measured, outcome, ratio: None }
    }

    /// Turns a failure into undecided if `why` may explain it.
    pub fn unless(self, why: Option<&str>) -> Self {
        match why.filter(|_| self.outcome == Outcome::Fail) {
            None => self,
            Some(why) => Self {
                outcome: Outcome::Undecided,
                measured: format!("{}; {why}", self.measured),
                ..self
            },
        }
    }

    /// A target whose subject or reference is missing.
    pub fn not_measured(target: &str, why: &str) -> Self {
        let outcome = Outcome::NotMeasured;
        Self { target: target.into(), measured: why.into(), outcome, ratio: None }
    }
}

/// The good side of a limit.
#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// The distance of a ratio from 1.
    Around(f64),
}

impl Bound {
    fn judge(self, estimate: &Estimate) -> Outcome {
        let Estimate { low, high, confidence, .. } = *estimate;
        let (holds, fails) = match self {
            Self::AtMost(limit) => (high <= limit, low > limit),
            Self::AtLeast(limit) => (low >= limit, high < limit),
            Self::Around(share) => {
                (low >= 1.0 - share && high <= 1.0 + share, low > 1.0 + share || high < 1.0 - share)
            }
        };
        match () {
            () if confidence < 0.9 => Outcome::Undecided,
            () if holds => Outcome::Pass,
            () if fails => Outcome::Fail,
            () => Outcome::Undecided,
        }
    }
}

fn ratio_words(estimate: &Estimate) -> String {
    let Estimate { low, middle, high, .. } = estimate;
    format!("{middle:.3} [{low:.3}, {high:.3}] at {}", percent(estimate))
}

fn value_words(estimate: &Estimate, unit: &str) -> String {
    let Estimate { low, middle, high, .. } = *estimate;
    let places = if middle < 100.0 { 2 } else { 0 };
    let at = percent(estimate);
    format!("{middle:.places$} [{low:.places$}, {high:.places$}] {unit} at {at}")
}

fn percent(estimate: &Estimate) -> String {
    format!("{} %", (estimate.confidence * 100.0).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(low: f64, high: f64, confidence: f64) -> Outcome {
        let estimate = Estimate { low, middle: f64::midpoint(low, high), high, confidence };
        Verdict::ratio("at most 0.2", 0.2, Some(estimate)).outcome
    }

    #[test]
    fn only_a_whole_interval_decides() {
        assert_eq!(outcome(0.10, 0.20, 0.95), Outcome::Pass);
        assert_eq!(outcome(0.21, 0.30, 0.95), Outcome::Fail);
        assert_eq!(outcome(0.19, 0.21, 0.95), Outcome::Undecided);
    }

    #[test]
    fn a_lower_bound_is_judged_from_below() {
        let rates = [990.0, 1_000.0, 1_010.0, 1_000.0, 1_020.0, 1_005.0];
        let outcome = |limit| Verdict::at_least("rate", limit, &rates, "per second").outcome;
        let outcomes = [outcome(900.0), outcome(1_100.0), outcome(1_000.0)];
        assert_eq!(outcomes, [Outcome::Pass, Outcome::Fail, Outcome::Undecided]);
    }

    #[test]
    fn a_failure_with_another_reason_decides_nothing() {
        let outcome = |holds, why| Verdict::exact("target", holds, "1".into()).unless(why).outcome;
        assert_eq!(outcome(false, Some("noise")), Outcome::Undecided);
        assert_eq!(
            [outcome(false, None), outcome(true, Some("noise"))],
            [Outcome::Fail, Outcome::Pass]
        );
    }

    #[test]
    fn an_agreement_is_judged_from_both_sides() {
        let outcome = |low, high| {
            let estimate =
                Estimate { low, middle: f64::midpoint(low, high), high, confidence: 0.95 };
            Verdict::agreement("as the other", 0.02, Some(estimate)).outcome
        };
        assert_eq!(outcome(0.99, 1.01), Outcome::Pass);
        assert_eq!([outcome(1.03, 1.05), outcome(0.90, 0.97)], [Outcome::Fail; 2]);
        assert_eq!(outcome(0.95, 1.01), Outcome::Undecided);
    }

    #[test]
    fn too_few_pairs_decide_nothing() {
        assert_eq!(outcome(0.1, 0.1, 0.5), Outcome::Undecided);
    }
}
