//! When a process of an app that has ended is started again.
//!
//! Called by the gateway at each end that was not requested. A run that was long enough shows that the program works, so
//! the next one begins at once; short runs double the wait. Invariant: a wait is never longer than the configured one.

/// The configured times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartTimes {
    /// The wait after the first short run.
    pub backoff_ms: u64,
    /// The longest wait.
    pub max_backoff_ms: u64,
    /// A run of this length is not short.
    pub stable_after_ms: u64,
}

/// The recent runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restarts {
    /// Consecutive short runs.
    short_runs: u32,
}

impl Restarts {
    /// Notes the end of a run. Returns the wait until the next one in ms.
    pub fn ended(&mut self, times: RestartTimes, ran_ms: u64) -> u64 {
        if ran_ms >= times.stable_after_ms {
            self.short_runs = 0;
            return 0;
        }
        let factor = 1_u64.checked_shl(self.short_runs).unwrap_or(u64::MAX);
        self.short_runs = self.short_runs.saturating_add(1);
        times.backoff_ms.saturating_mul(factor).min(times.max_backoff_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMES: RestartTimes =
        RestartTimes { backoff_ms: 100, max_backoff_ms: 1_000, stable_after_ms: 1_000 };

    #[test]
    fn short_runs_double_the_wait_up_to_the_longest() {
        let mut restarts = Restarts::default();
        let waits: Vec<u64> = (0..6).map(|_| restarts.ended(TIMES, 999)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
    }

    #[test]
    fn a_stable_run_is_followed_by_the_next_at_once() {
        let mut restarts = Restarts::default();
        for _ in 0..10 {
            restarts.ended(TIMES, 0);
        }
        assert_eq!(restarts.ended(TIMES, 1_000), 0);
        assert_eq!(restarts.ended(TIMES, 0), 100, "earlier short runs are forgotten");
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_configured(
            runs in prop::collection::vec(0..1_500_u64, 0..200),
            backoff_ms in 10..u64::MAX,
        ) {
            let mut restarts = Restarts::default();
            let times = RestartTimes { backoff_ms, ..TIMES };
            for ran_ms in runs {
                prop_assert!(restarts.ended(times, ran_ms) <= 1_000);
            }
        }
    }
}
