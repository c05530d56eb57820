//! [`RetryBudget`]: how many retries are allowed, so that retries do not multiply the load of servers that
//! fail.
//!
//! A bucket of tokens: each request adds a part of one, each retry takes one. Invariant: over any time, there
//! are at most the share of its requests and [`RESERVE`] retries.

use std::sync::atomic::{AtomicU64, Ordering};

/// The most retries in a burst.
const RESERVE: u64 = 100;
/// A token, in percent of a request.
const TOKEN: u64 = 100;

/// See the module.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    percent: u64,
    tokens: AtomicU64,
}

impl RetryBudget {
    pub(crate) fn new(percent: u32) -> Self {
        Self { percent: percent.into(), tokens: AtomicU64::new(RESERVE * TOKEN) }
    }

    /// A request is sent for the first time.
    pub(crate) fn add(&self) {
        let most = RESERVE * TOKEN;
        if self.tokens.load(Ordering::Relaxed) < most {
            let added = |tokens: u64| Some((tokens + self.percent).min(most));
            let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        }
    }

    /// Takes a retry; false if none is left.
    pub(crate) fn take(&self) -> bool {
        let taken = |tokens: u64| tokens.checked_sub(TOKEN);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_requests_beyond_the_reserve() {
        let budget = RetryBudget::new(20);
        assert_eq!((0..1_000).filter(|_| budget.take()).count() as u64, RESERVE);
        (0..50).for_each(|_| budget.add());
        assert_eq!((0..1_000).filter(|_| budget.take()).count(), 10);
        (0..1_000_000).for_each(|_| budget.add());
        assert_eq!((0..1_000).filter(|_| budget.take()).count() as u64, RESERVE, "it is bounded");
    }

    #[test]
    fn without_a_share_only_the_reserve_is_left() {
        let budget = RetryBudget::new(0);
        (0..1_000).for_each(|_| budget.add());
        assert_eq!((0..1_000).filter(|_| budget.take()).count() as u64, RESERVE);
    }
}
