//! [`KeyDistribution`]: which of many items is drawn next, uniformly or by Zipf's law.
//!
//! Used for keys and for the rows of data feeds, one per thread and number of items. Zipf's law is
//! computed by the method of Gray and others, "Quickly Generating Billion-Record Synthetic
//! Databases" (1994), which YCSB uses: the sum is computed once, and a number then costs two powers
//! at most.

use crate::random::Random;

/// The exponent that YCSB uses.
pub const DEFAULT_EXPONENT: f64 = 0.99;

/// The sum is computed term by term up to here, and by its integral beyond.
const TERMS: u64 = 1 << 20;

/// A multiplier that is coprime to any number of items below 2^32, so that it only permutes them.
const SCATTER: u128 = 4_294_967_311;

/// A distribution over `count` items.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyDistribution {
    Uniform { count: u64 },
    Zipf(Zipf),
}

impl KeyDistribution {
    /// By Zipf's law with this exponent, if one is given.
    pub(crate) fn new(count: u64, exponent: Option<f64>) -> Self {
        match exponent {
            Some(exponent) if count > 1 => Self::Zipf(Zipf::new(count, exponent)),
            _ => Self::Uniform { count },
        }
    }

    /// The next item. Frequent items are scattered.
    pub(crate) fn next(&self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { count } => random.below(*count),
            Self::Zipf(zipf) => {
                (u128::from(zipf.rank(random)) * SCATTER % u128::from(zipf.count)) as u64
            }
        }
    }

    /// The next item, the most frequent first.
    pub(crate) fn rank(&self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { count } => random.below(*count),
            Self::Zipf(zipf) => zipf.rank(random),
        }
    }
}

/// The precomputed constants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zipf {
    count: u64,
    exponent: f64,
    /// Sum of `1 / rank^exponent`.
    sum: f64,
    /// Of the first two items.
    sum_of_two: f64,
    eta: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Self {
        let sum = sum(count, exponent);
        let sum_of_two = 1.0 + 0.5_f64.powf(exponent);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - exponent)) / (1.0 - sum_of_two / sum);
        Self { count, exponent, sum, sum_of_two, eta }
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let uniform = random.unit();
        let part = uniform * self.sum;
        if part < 1.0 {
            return 0;
        }
        if part < self.sum_of_two {
            return 1;
        }
        let base = self.eta * uniform - self.eta + 1.0;
        let rank = self.count as f64 * base.powf(1.0 / (1.0 - self.exponent));
        (rank as u64).min(self.count - 1)
    }
}

fn sum(count: u64, exponent: f64) -> f64 {
    let terms = count.min(TERMS);
    let exact: f64 = (1..=terms).map(|rank| (rank as f64).powf(-exponent)).sum();
    let integral = |to: u64| (to as f64 + 0.5).powf(1.0 - exponent) / (1.0 - exponent);
    exact + integral(count) - integral(terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: u64) -> Vec<u32> {
        let (draw, mut random) =
            (KeyDistribution::new(count, Some(DEFAULT_EXPONENT)), Random::new(7));
        let mut counts = vec![0; count as usize];
        for _ in 0..100_000 {
            counts[draw.rank(&mut random) as usize] += 1;
        }
        counts
    }

    #[test]
    fn the_second_is_drawn_half_as_often_as_the_first() {
        let counts = counts(1_000);
        let expected = 100_000.0 / sum(1_000, DEFAULT_EXPONENT);
        let is_near =
            |found: u32, share: f64| (f64::from(found) / expected / share - 1.0).abs() < 0.1;
        assert!(is_near(counts[0], 1.0) && is_near(counts[1], 0.5), "{:?}", &counts[..3]);
        assert!(counts[900..].iter().sum::<u32>() > 0, "the last are drawn as well");
    }

    #[test]
    fn scattering_takes_none_twice() {
        let mut places: Vec<u64> =
            (0..10_000_u128).map(|rank| (rank * SCATTER % 10_000) as u64).collect();
        places.sort_unstable();
        assert!(places.iter().copied().eq(0..10_000));
    }

    #[test]
    fn the_integral_continues_the_sum() {
        let exact: f64 = (1..=2 * TERMS).map(|rank| (rank as f64).powf(-DEFAULT_EXPONENT)).sum();
        assert!((sum(2 * TERMS, DEFAULT_EXPONENT) / exact - 1.0).abs() < 1e-9);
    }

    #[test]
    fn one_item_and_none_can_be_drawn() {
        let mut random = Random::new(1);
        let mut drawn =
            |count| KeyDistribution::new(count, Some(DEFAULT_EXPONENT)).next(&mut random);
        assert_eq!([drawn(0), drawn(1)], [0, 0]);
        assert!(drawn(2) < 2);
    }
}
