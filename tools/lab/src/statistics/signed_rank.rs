//! The Wilcoxon signed-rank test, exact, and the Hodges–Lehmann estimate that belongs to it
//! (Hollander, Wolfe, *Nonparametric Statistical Methods*, §3.1 to §3.3).
//!
//! It assumes neither normal noise nor a quiet machine, only that the noise of a pair's two slices
//! is alike, so that their difference is as likely above the true one as below.

use super::{Estimate, median};

/// The two-sided probability of differences at least as far from zero as these if there is no
/// difference. Zeros are left out; equal sizes share their ranks, and the distribution is that of
/// the shared ranks. 1 if nothing differs.
pub fn p_value(differences: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = differences.iter().copied().filter(|&d| d != 0.0).collect();
    sizes.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&sizes);
    let positive: usize =
        sizes.iter().zip(&ranks).filter(|(size, _)| **size > 0.0).map(|(_, rank)| rank).sum();
    let total: usize = ranks.iter().sum();
    let distribution = distribution(&ranks);
    let tail: f64 = distribution.iter().take(positive.min(total - positive) + 1).sum();
    (2.0 * tail).min(1.0)
}

/// The Hodges–Lehmann estimate of the middle, with the interval that keeps at least the given
/// confidence, or the widest there is when even that falls short. `None` without values.
pub fn estimate(values: &[f64], confidence: f64) -> Option<Estimate> {
    let means = pair_means(values);
    let (skip, confidence) = ranks_outside(values.len(), confidence);
    let high = *means.len().checked_sub(1 + skip).and_then(|at| means.get(at))?;
    Some(Estimate { low: means[skip], middle: median(&means), high, confidence })
}

/// The fewest pairs whose most extreme outcome is rarer than `alpha`.
pub fn fewest_pairs(alpha: f64) -> usize {
    (1..=60).find(|&pairs| 2.0 * 0.5_f64.powi(pairs) <= alpha).unwrap_or(60) as usize
}

/// Ranks of values sorted by size, times two so that shared ranks stay whole.
fn doubled_ranks(sizes: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sizes.len());
    for equal in sizes.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        let last = ranks.len() + equal.len();
        ranks.extend(std::iter::repeat_n(first + last, equal.len()));
    }
    ranks
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
/// number with the requested confidence, or none if that is too few.
fn ranks_outside(pairs: usize, confidence: f64) -> (usize, f64) {
    let ranks: Vec<usize> = (1..=pairs).collect();
    let distribution = distribution(&ranks);
    let (mut tail, mut best) = (0.0, None);
    for (rank, probability) in distribution.iter().enumerate().take(distribution.len() / 2) {
        tail += probability;
        if best.is_some() && 1.0 - 2.0 * tail < confidence {
            break;
        }
        best = Some((rank, 1.0 - 2.0 * tail));
    }
    best.unwrap_or((0, 0.0))
}

/// The probability of every sum of a random half of these ranks: of each possible choice of
/// signs, when there is no difference.
fn distribution(ranks: &[usize]) -> Vec<f64> {
    let mut probabilities = vec![0.0; ranks.iter().sum::<usize>() + 1];
    probabilities[0] = 1.0;
    for &rank in ranks {
        for sum in (0..probabilities.len()).rev() {
            let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = f64::midpoint(probabilities[sum], with);
        }
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_interval_uses_the_published_critical_values() {
        // Two-sided 5 % critical values of the signed-rank sum: n = 6 → 0, 8 → 3, 12 → 13.
        assert_eq!([6, 8, 12].map(|n| ranks_outside(n, 0.95).0), [0, 3, 13]);
        assert!(ranks_outside(12, 0.95).1 >= 0.95);
    }

    #[test]
    fn exact_probabilities_are_those_of_the_tables() {
        // All of one sign: 2 / 2^n. With n = 5 a positive sum of 1 has 2 × 2 / 32.
        assert_eq!(p_value(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2.0 / 64.0);
        assert_eq!(p_value(&[1.0, -2.0, -3.0, -4.0, -5.0]), 4.0 / 32.0);
        // Hollander and Wolfe, table 3.1 (Hamilton depression scale): T+ = 5, n = 9, p = 0.039.
        let scale = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];
        assert!((p_value(&scale) - 20.0 / 512.0).abs() < 1e-12);
    }

    #[test]
    fn equal_sizes_share_their_ranks() {
        // Ranks 1.5, 1.5, 3: a positive sum of 1.5 or less has 3 of 8 choices of signs.
        assert_eq!(p_value(&[1.0, -1.0, -2.0]), 6.0 / 8.0);
    }

    #[test]
    fn nothing_that_differs_shows_nothing() {
        assert_eq!(p_value(&[]), 1.0);
        assert_eq!(p_value(&[0.0, 0.0, 0.0]), 1.0);
    }

    #[test]
    fn the_fewest_pairs_are_those_whose_best_case_is_rare_enough() {
        assert_eq!([0.05, 0.0182, 0.001].map(fewest_pairs), [6, 7, 11]);
    }

    proptest! {
        #[test]
        fn a_probability_does_not_depend_on_direction_or_unit(
            values in vec(-5.0..5.0_f64, 1..14), unit in 0.1..10.0_f64,
        ) {
            let p = p_value(&values);
            prop_assert!(p > 0.0 && p <= 1.0);
            let negated: Vec<f64> = values.iter().map(|value| -value).collect();
            prop_assert!((p_value(&negated) - p).abs() < 1e-12);
            let scaled: Vec<f64> = values.iter().map(|value| value * unit).collect();
            prop_assert!((p_value(&scaled) - p).abs() < 1e-12);
        }

        #[test]
        fn an_estimate_moves_with_its_values(
            values in vec(-5.0..5.0_f64, 2..14), by in -3.0..3.0_f64,
        ) {
            let before = estimate(&values, 0.9).expect("there are values");
            prop_assert!(before.low <= before.middle && before.middle <= before.high);
            let moved: Vec<f64> = values.iter().map(|value| value + by).collect();
            let after = estimate(&moved, 0.9).expect("there are values");
            prop_assert!((after.middle - before.middle - by).abs() < 1e-9);
            prop_assert!((after.low - before.low - by).abs() < 1e-9);
        }

        /// The interval inverts the test: zero lies outside of it exactly when the test finds a
        /// difference.
        #[test]
        fn interval_and_test_agree(values in vec(-2.0..3.0_f64, 6..14)) {
            let Estimate { low, high, confidence, .. } =
                estimate(&values, 0.95).expect("there are values");
            let outside = low > 0.0 || high < 0.0;
            prop_assert_eq!(outside, p_value(&values) <= 1.0 - confidence + 1e-12);
        }
    }
}
