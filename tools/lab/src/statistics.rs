//! Estimates from paired slices: the Hodges–Lehmann median with an exact interval.
//!
//! One pair is one round of the interleave; requests are never treated as samples. Everything here
//! is pure. [`signed_rank`] tests and estimates, [`judge`] derives a class, [`looks`] fixes when to
//! look, [`holm`] corrects for several comparisons, [`power`] says what a number of pairs can show.

pub mod holm;
pub mod judge;
pub mod looks;
pub mod power;
pub mod signed_rank;
#[cfg(test)]
mod simulation;

use serde::{Deserialize, Serialize};

/// The confidence of intervals, if the number of pairs allows it.
pub const CONFIDENCE: f64 = 0.95;

/// A median, of values or of paired ratios, and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Lower end.
    pub low: f64,
    /// The estimate itself.
    pub middle: f64,
    /// Upper end.
    pub high: f64,
    /// The interval's real confidence, below 0.95 when there are fewer than six pairs.
    pub confidence: f64,
}

impl Estimate {
    /// The estimate of the exponential: an estimate of logarithms of ratios becomes one of ratios.
    pub fn exp(self) -> Self {
        let Self { low, middle, high, confidence } = self;
        Self { low: low.exp(), middle: middle.exp(), high: high.exp(), confidence }
    }
}

/// Logarithms of `subject / reference`, pair by pair. `None` when a value is not above zero.
pub fn log_ratios(subject: &[f64], reference: &[f64]) -> Option<Vec<f64>> {
    let pairs = subject.iter().zip(reference);
    pairs.map(|(&a, &b)| (a > 0.0 && b > 0.0).then(|| (a / b).ln())).collect()
}

/// Estimates the ratio `subject / reference` from slices of the same rounds. `None` without
/// pairs, or when a value is not above zero.
pub fn paired_ratio(subject: &[f64], reference: &[f64]) -> Option<Estimate> {
    middle(&log_ratios(subject, reference)?).map(Estimate::exp)
}

/// Estimates the middle of one value per slice. `None` without slices.
pub fn middle(values: &[f64]) -> Option<Estimate> {
    signed_rank::estimate(values, CONFIDENCE)
}

/// The median of sorted or unsorted values; NaN without values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pairs_report_their_low_confidence() {
        let estimate = paired_ratio(&[1.0, 1.1], &[2.0, 2.0]).expect("two pairs");
        assert_eq!(estimate.confidence, 0.5);
    }

    #[test]
    fn drift_that_hits_both_slices_of_a_pair_cancels() {
        let reference: Vec<f64> = (1..=8).map(|n| f64::from(n) * 10.0).collect();
        let subject: Vec<f64> = reference.iter().map(|value| value / 5.0).collect();
        let estimate = paired_ratio(&subject, &reference).expect("eight pairs");
        for value in [estimate.low, estimate.middle, estimate.high] {
            assert!((value - 0.2).abs() < 1e-12);
        }
    }

    #[test]
    fn no_measurement_gives_no_estimate() {
        assert_eq!(paired_ratio(&[], &[]), None);
        assert_eq!(paired_ratio(&[0.0], &[1.0]), None);
    }
}
