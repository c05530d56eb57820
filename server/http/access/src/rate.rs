//! [`Rate`]: how many requests of a client are admitted in a period, as a token bucket.
//!
//! Used by the table, and for buckets that gateways share. The bucket is one time, as in the generic cell
//! rate algorithm (ITU-T I.371): the time at which it is full again. Each admitted request moves it by the
//! time in which one token comes in.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// The time in which a token comes in.
    pub(crate) token_ns: u64,
    /// The tokens of a full bucket.
    pub(crate) burst: u32,
}

/// The result for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Whether the request is admitted.
    pub is_admitted: bool,
    /// The requests that would be admitted at once after this one.
    pub remaining: u32,
    /// The time until one more is admitted; 0 if it is at once.
    pub retry_ns: u64,
}

impl Rate {
    /// So many requests in a period, and so many at once.
    ///
    /// # Panics
    /// One of the numbers is 0: the configuration has been checked.
    pub fn new(count: u32, period_ms: u64, burst: u32) -> Self {
        assert!(count > 0 && period_ms > 0 && burst > 0, "a rate is positive");
        let token_ns = (period_ms.saturating_mul(1_000_000) / u64::from(count)).max(1);
        Self { token_ns, burst }
    }

    /// The tokens of a full bucket.
    pub fn burst(&self) -> u32 {
        self.burst
    }

    /// The time in which a token comes in.
    pub fn token_ns(&self) -> u64 {
        self.token_ns
    }

    /// The time in which an empty bucket becomes full.
    pub fn full_ns(&self) -> u64 {
        self.token_ns.saturating_mul(u64::from(self.burst))
    }

    /// Takes `cost` tokens of the bucket that is full at `full_at_ns`; the new time, if it had so many.
    pub(crate) fn spend(&self, full_at_ns: u64, cost: u32, now_ns: u64) -> (Option<u64>, Spending) {
        let base_ns = full_at_ns.max(now_ns);
        let spending = self.spending(base_ns - now_ns, cost);
        let spent_ns = self.token_ns.saturating_mul(cost.into());
        (spending.is_admitted.then(|| base_ns.saturating_add(spent_ns)), spending)
    }

    /// What taking `cost` tokens of a bucket results in that needs `debt_ns` to be full.
    pub(crate) fn spending(&self, debt_ns: u64, cost: u32) -> Spending {
        let full_ns = self.full_ns();
        let spent_ns = self.token_ns.saturating_mul(cost.into());
        let after_ns = debt_ns.saturating_add(spent_ns);
        if after_ns > full_ns {
            return Spending { is_admitted: false, remaining: 0, retry_ns: after_ns - full_ns };
        }
        let remaining = u32::try_from((full_ns - after_ns) / self.token_ns).unwrap_or(u32::MAX);
        let missing_ns = after_ns.saturating_add(self.token_ns).saturating_sub(full_ns);
        let retry_ns = if remaining > 0 { 0 } else { missing_ns };
        Spending { is_admitted: true, remaining, retry_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_bucket_admits_its_burst_and_then_its_rate() {
        let rate = Rate::new(2, 1_000, 3);
        let mut full_at = 0;
        let mut spend = |now, cost| {
            let (next, spending) = rate.spend(full_at, cost, now);
            full_at = next.unwrap_or(full_at);
            (spending.is_admitted, spending.remaining, spending.retry_ns)
        };
        let half = SECOND / 2;
        assert_eq!(spend(SECOND, 1), (true, 2, 0));
        assert_eq!(spend(SECOND, 1), (true, 1, 0));
        assert_eq!(spend(SECOND, 1), (true, 0, half));
        assert_eq!(spend(SECOND, 1), (false, 0, half));
        assert_eq!(spend(SECOND + half - 1, 1), (false, 0, 1));
        assert_eq!(spend(SECOND + half, 1), (true, 0, half));
        assert_eq!(spend(9 * SECOND, 4), (false, 0, half));
        assert_eq!(spend(9 * SECOND, 2), (true, 1, 0));
        assert_eq!(spend(9 * SECOND, 2), (false, 0, half));
    }

    #[test]
    fn extreme_rates_do_not_overflow() {
        let slow = Rate::new(1, u64::MAX, u32::MAX);
        assert!(slow.spend(u64::MAX, 1, 0).0.is_none_or(|next| next == u64::MAX));
        let fast = Rate::new(u32::MAX, 1, 1);
        assert_eq!((fast.token_ns, fast.full_ns()), (1, 1));
    }
}
