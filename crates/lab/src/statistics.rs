//! Estimates from paired slices: the Hodges–Lehmann median with an exact interval.
//!
//! One pair is one round of the interleave; requests are never treated as samples. The interval
//! inverts the Wilcoxon signed-rank test (Hollander, Wolfe, *Nonparametric Statistical Methods*,
//! §3.3): it assumes neither normal noise nor a quiet machine, only that the noise of a pair's
//! two slices is alike. Simulations of drifting machines kept its error rate near the nominal.

use serde::Serialize;

/// How sure an interval is to hold the true value, where the number of pairs allows it.
const CONFIDENCE: f64 = 0.95;

/// A median, of values or of paired ratios, and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

/// Estimates the ratio `subject / reference` from slices of the same rounds. `None` without
/// pairs, or when a value is not above zero.
pub fn paired_ratio(subject: &[f64], reference: &[f64]) -> Option<Estimate> {
    let logs: Option<Vec<f64>> = subject
        .iter()
        .zip(reference)
        .map(|(&a, &b)| (a > 0.0 && b > 0.0).then(|| (a / b).ln()))
        .collect();
    let Estimate { low, middle, high, confidence } = middle(&logs?)?;
    Some(Estimate { low: low.exp(), middle: middle.exp(), high: high.exp(), confidence })
}

/// Estimates the middle of one value per slice. `None` without slices.
pub fn middle(values: &[f64]) -> Option<Estimate> {
    let means = pair_means(values);
    let (skip, confidence) = ranks_outside(values.len());
    let high = *means.len().checked_sub(1 + skip).and_then(|at| means.get(at))?;
    Some(Estimate { low: means[skip], middle: median(&means), high, confidence })
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

/// Means of all pairs of values, each with itself too (Walsh averages), sorted.
fn pair_means(values: &[f64]) -> Vec<f64> {
    let each = values.iter().enumerate();
    let mut means: Vec<f64> =
        each.flat_map(|(at, a)| values[at..].iter().map(move |b| f64::midpoint(*a, *b))).collect();
    means.sort_by(f64::total_cmp);
    means
}

/// How many pair means lie outside the interval on each side, and its confidence: the largest
/// number that keeps [`CONFIDENCE`], or none when even that falls short.
fn ranks_outside(pairs: usize) -> (usize, f64) {
    let distribution = signed_rank_distribution(pairs);
    let (mut tail, mut best) = (0.0, None);
    for (rank, probability) in distribution.iter().enumerate().take(distribution.len() / 2) {
        tail += probability;
        if best.is_some() && 1.0 - 2.0 * tail < CONFIDENCE {
            break;
        }
        best = Some((rank, 1.0 - 2.0 * tail));
    }
    best.unwrap_or((0, 0.0))
}

/// The probability of every value of the signed-rank sum when there is no difference.
fn signed_rank_distribution(pairs: usize) -> Vec<f64> {
    let mut probabilities = vec![0.0; pairs * (pairs + 1) / 2 + 1];
    probabilities[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..probabilities.len()).rev() {
            let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = f64::midpoint(probabilities[sum], with);
        }
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_uses_the_published_critical_values() {
        // Two-sided 5 % critical values of the signed-rank sum: n = 6 → 0, 8 → 3, 12 → 13.
        assert_eq!([6, 8, 12].map(|n| ranks_outside(n).0), [0, 3, 13]);
        assert!(ranks_outside(12).1 >= 0.95);
    }

    #[test]
    fn few_pairs_admit_their_low_confidence() {
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
    fn nothing_measured_is_no_estimate() {
        assert_eq!(paired_ratio(&[], &[]), None);
        assert_eq!(paired_ratio(&[0.0], &[1.0]), None);
    }
}
