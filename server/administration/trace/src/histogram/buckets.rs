//! Which bucket a duration is in.
//!
//! Used by the histogram and by its snapshots. Invariant: bucket `key` has the durations above
//! 2^((key - 1) / 8) s, up to and including 2^(key / 8) s.

/// Upper bounds of the classic buckets, in microseconds; the last bucket has none.
pub const BOUNDS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];
/// Buckets for each power of two: 2^SCHEMA.
pub const SCHEMA: i32 = 3;
/// The key of the first exponential bucket, which has everything up to about a microsecond.
pub const FIRST_KEY: i32 = -160;

pub(crate) const CLASSIC: usize = BOUNDS_US.len() + 1;
/// The last one ends at more than an hour.
pub(crate) const EXPONENTIAL: usize = 256;
const PER_OCTAVE: i32 = 1 << SCHEMA;
/// The upper bound of a bucket divided by its lower one: 2^(1 / 8).
pub(crate) const WIDTH: f64 = 2.0 * FRACTIONS[1];
/// Longer durations are recorded as this one.
pub(crate) const LONGEST_US: u64 = 3_600_000_000;

/// Bounds of the buckets between a half and one: 2^(n / 8) / 2.
const FRACTIONS: [f64; PER_OCTAVE as usize] = [
    0.5,
    0.545_253_866_332_628_8,
    0.594_603_557_501_360_5,
    0.648_419_777_325_504_8,
    std::f64::consts::FRAC_1_SQRT_2,
    0.771_105_412_703_970_4,
    0.840_896_415_253_714_5,
    0.917_004_043_204_671_2,
];

pub(crate) fn classic(us: u64) -> usize {
    BOUNDS_US.partition_point(|bound| *bound < us)
}

pub(crate) fn exponential(us: u64) -> usize {
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    const HALF: u64 = 1022;
    let seconds = us.clamp(1, LONGEST_US) as f64 / 1e6;
    // The number is fraction × 2^exponent, with a fraction from a half to one.
    let bits = seconds.to_bits();
    let exponent = (bits >> FRACTION_BITS) as i32 - HALF as i32;
    let fraction = f64::from_bits(bits & ((1 << FRACTION_BITS) - 1) | HALF << FRACTION_BITS);
    let within = FRACTIONS.partition_point(|bound| *bound < fraction) as i32;
    let key = within + (exponent - 1) * PER_OCTAVE;
    usize::try_from(key - FIRST_KEY).unwrap_or(0).min(EXPONENTIAL - 1)
}

/// The upper bound of an exponential bucket, in seconds.
pub(crate) fn bound_s(index: usize) -> f64 {
    let key = index as i32 + FIRST_KEY;
    (f64::from(key) / f64::from(PER_OCTAVE)).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        for (index, bound) in BOUNDS_US.iter().enumerate() {
            assert_eq!((classic(*bound), classic(*bound + 1)), (index, index + 1));
        }
        // A quarter of a second, half a second and a second are exact powers of two.
        for (us, key) in [(250_000, -16), (500_000, -8), (1_000_000, 0), (1_000_001, 1)] {
            assert_eq!(exponential(us) as i32 + FIRST_KEY, key, "{us}");
        }
    }

    #[test]
    fn the_shortest_and_the_longest_duration_have_a_bucket() {
        assert_eq!((exponential(0), exponential(1)), (1, 1));
        assert_eq!(exponential(u64::MAX), exponential(LONGEST_US));
        assert_eq!(exponential(LONGEST_US), EXPONENTIAL - 1);
    }

    proptest! {
        #[test]
        fn a_duration_is_between_the_bounds_of_its_bucket(us in 1..LONGEST_US) {
            let (index, seconds) = (exponential(us), us as f64 / 1e6);
            // The bounds are computed otherwise, with an error in the last digit.
            let error = 1.0 + 1e-12;
            prop_assert!(seconds <= bound_s(index) * error);
            prop_assert!(seconds >= bound_s(index - 1) / error);
        }
    }
}
