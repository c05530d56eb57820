//! [`Random`]: pseudo-random numbers that repeat with their seed.
//!
//! Used for arrivals, keys and generated bodies, with a state per thread. SplitMix64 (Steele, Lea
//! and Flood 2014) needs a few instructions per number and works with any seed. Not for secrets.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0. The bias is below `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number from the exponential distribution with mean 1: the gap between two arrivals of a
    /// Poisson process of rate 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 53 bits give a number in (0, 1], whose logarithm is finite.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers_and_another_seed_does_not() {
        let take = |seed| {
            let mut random = Random::new(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_both_ends() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| random.below(4)).collect();
        assert!((0..4).all(|number| drawn.contains(&number)));
        assert!(drawn.iter().all(|&number| number < 4));
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn exponential_gaps_have_the_mean_one() {
        let mut random = Random::new(3);
        let sum: f64 = (0..100_000).map(|_| random.exponential()).sum();
        assert!((sum / 100_000.0 - 1.0).abs() < 0.02, "{sum}");
    }
}
