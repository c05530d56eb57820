//! A bar, what was measured against it, and what follows.
//!
//! Made by the experiments, printed by [`crate::table`], turned into the exit code by `main`.
//! Invariant: a ratio passes or fails only when its whole interval lies on one side of the bar.

use serde::Serialize;

use crate::statistics::Estimate;

/// What follows from a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The bar holds.
    Pass,
    /// The bar does not hold.
    Fail,
    /// The interval straddles the bar: more slices are needed.
    Undecided,
    /// There was nothing to measure.
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

/// One row of the table of bars.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// What must hold, with its unit.
    pub bar: String,
    /// What was measured.
    pub measured: String,
    /// What follows.
    pub outcome: Outcome,
    /// The ratio behind it, where it is one.
    pub ratio: Option<Estimate>,
}

impl Verdict {
    /// A paired ratio that may not exceed `limit`.
    pub fn ratio(bar: &str, limit: f64, ratio: Option<Estimate>) -> Self {
        let Some(estimate) = ratio else { return Self::not_measured(bar, "no pairs of slices") };
        let Estimate { low, middle, high, confidence } = estimate;
        let outcome = match () {
            () if confidence < 0.9 => Outcome::Undecided,
            () if high <= limit => Outcome::Pass,
            () if low > limit => Outcome::Fail,
            () => Outcome::Undecided,
        };
        let sure = (confidence * 100.0).round();
        let measured = format!("{middle:.3} [{low:.3}, {high:.3}] at {sure} %");
        Self { bar: bar.into(), measured, outcome, ratio }
    }

    /// A plain condition, with the numbers it was judged by.
    pub fn exact(bar: &str, holds: bool, measured: String) -> Self {
        let outcome = if holds { Outcome::Pass } else { Outcome::Fail };
        Self { bar: bar.into(), measured, outcome, ratio: None }
    }

    /// A bar whose subject or reference is missing.
    pub fn not_measured(bar: &str, why: &str) -> Self {
        let outcome = Outcome::NotMeasured;
        Self { bar: bar.into(), measured: why.into(), outcome, ratio: None }
    }
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
    fn too_few_pairs_decide_nothing() {
        assert_eq!(outcome(0.1, 0.1, 0.5), Outcome::Undecided);
    }
}
