//! [`Ticks`]: the time of a table's buckets, in fractions of the time in which a token comes in.
//!
//! Used by the table alone. A time has [`TIME_BITS`] and begins again after all of them. Invariants: a token
//! takes a whole number of ticks, so that a rate is exact however coarse they are; no debt is longer
//! than a small part of the range, so that a time beyond is one of the past. A bucket that is left alone for
//! nearly the whole range, which is a day or more for rates below 800,000/s, looks used once.

use crate::rate::{Rate, Spending};

/// The bits of a time; the rest of a bucket's word tells keys apart.
pub(super) const TIME_BITS: u32 = 36;
/// A tick is not shorter, if a token takes longer: the range is a day.
const TICK_MIN_NS: u64 = 1_258;
/// Ticks of a token, as a power of two, at most.
const PARTS_MAX: u32 = 12;
/// Ticks of a full bucket, as a power of two, at most, if a token has more than one.
const FULL_MAX: u32 = 26;
/// How much the clocks of threads can differ: each has that of its event loop's turn.
const SKEW_NS: u64 = 4_000_000_000;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    rate: Rate,
    /// The ticks of a token, as a power of two.
    parts: u32,
    ticks_per_ns: f64,
    /// Those of a full bucket.
    full: u64,
    /// A debt that is longer is a time of the past.
    debt_max: u64,
}

impl Ticks {
    pub(super) fn of(rate: &Rate) -> Self {
        let by_range = (rate.token_ns / TICK_MIN_NS).checked_ilog2().unwrap_or(0);
        let by_burst = FULL_MAX.saturating_sub(rate.burst.ilog2() + 1);
        let parts = PARTS_MAX.min(by_range).min(by_burst);
        let ticks_per_ns = (1_u64 << parts) as f64 / rate.token_ns as f64;
        let full = u64::from(rate.burst) << parts;
        let skew = (SKEW_NS as f64 * ticks_per_ns) as u64;
        let debt_max = full + skew.min(1 << (TIME_BITS - 3));
        Self { rate: *rate, parts, ticks_per_ns, full, debt_max }
    }

    /// A time of the clock.
    pub(super) fn at(&self, now_ns: u64) -> u64 {
        (now_ns as f64 * self.ticks_per_ns) as u64
    }

    /// How long a bucket needs to be full.
    pub(super) fn debt(&self, bucket: u64, now: u64) -> u64 {
        let debt = bucket.wrapping_sub(now) & ((1 << TIME_BITS) - 1);
        if bucket == 0 || debt > self.debt_max { 0 } else { debt }
    }

    /// The debt after `cost` tokens were taken, which may be more than there are.
    pub(super) fn spend(&self, debt: u64, cost: u32) -> (u64, Spending) {
        let after = debt + (u64::from(cost) << self.parts);
        let Some(rest) = self.full.checked_sub(after) else {
            let retry_ns = self.ns(after - self.full);
            let after = after.min(self.debt_max);
            return (after, Spending { is_admitted: false, remaining: 0, retry_ns });
        };
        let remaining = (rest >> self.parts) as u32;
        let retry_ns = if remaining > 0 { 0 } else { self.ns((1 << self.parts) - rest) };
        (after, Spending { is_admitted: true, remaining, retry_ns })
    }

    fn ns(&self, ticks: u64) -> u64 {
        let ns = (u128::from(ticks) * u128::from(self.rate.token_ns)).div_ceil(1 << self.parts);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_the_past_is_no_debt_however_long_ago() {
        for rate in [Rate::new(100, 1_000, 100), Rate::new(1, 86_400_000, 1)] {
            let ticks = Ticks::of(&rate);
            let token = 1_u64 << ticks.parts;
            for now_ns in [1_u64, 1 << 40, 1 << 58] {
                let now = ticks.at(now_ns);
                let bucket = 1 << 63 | now.wrapping_add(token) & ((1 << TIME_BITS) - 1);
                assert_eq!(ticks.debt(bucket, now), token);
                for later in [token, 5 * token, 1 << 30, 1 << 35, (1 << 36) - ticks.debt_max] {
                    assert_eq!(ticks.debt(bucket, now.wrapping_add(later)), 0, "{later}");
                }
            }
        }
    }

    #[test]
    fn every_rate_has_ticks_and_a_range() {
        for (count, period_ms, burst) in [
            (1, 1_000, 1),
            (1_000_000, 1_000, 1_000_000),
            (u32::MAX, 1, u32::MAX),
            (1, 31_536_000_000, 1_000_000),
            (5, 3_600_000, 5),
        ] {
            let rate = Rate::new(count, period_ms, burst);
            let ticks = Ticks::of(&rate);
            assert!(ticks.debt_max < 1 << (TIME_BITS - 1), "{rate:?}");
            let second = ticks.at(1_000_000_000) as f64 / f64::from(1_u32 << ticks.parts);
            let tokens = 1e9 / rate.token_ns as f64;
            assert!((second - tokens).abs() <= 1.0, "{second} and {tokens}");
            let (after, spending) = ticks.spend(0, burst);
            assert!(spending.is_admitted && spending.remaining == 0, "{rate:?}");
            assert!(!ticks.spend(after, 1).1.is_admitted, "{rate:?}");
        }
    }
}
