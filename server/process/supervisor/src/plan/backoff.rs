//! When a worker or zygote that died may be replaced.
//!
//! Called by the pool at each unexpected death. A process that dies while starting will probably do
//! so again, so the wait doubles. A process that dies while serving worked until some request came,
//! so its successor starts at once, and only crash loops are slowed down. Invariant: a wait is
//! never longer than [`LONGEST_WAIT_MS`].

/// First wait after a death while starting.
pub const FIRST_WAIT_MS: u64 = 10;
/// Longest wait after a death while starting.
pub const LONGEST_WAIT_MS: u64 = 5_000;
/// Deaths while starting are forgotten after this time without one.
pub const FORGET_AFTER_MS: u64 = 10_000;
/// Deaths while serving whose successors start at once, however close together.
pub const CRASH_BURST: u64 = 200;
/// Beyond them, the time per successor. A pool in which a crawler crashes workers keeps most of its
/// capacity, and forks and log lines stay bounded.
pub const CRASH_INTERVAL_MS: u64 = 100;

/// The recent deaths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backoff {
    /// Consecutive deaths while starting; those of one batch count once.
    failures: u32,
    last_failure_ms: u64,
    not_before_ms: u64,
    /// When a steady rate of crashes would have come to this one (GCRA, ITU-T I.371).
    crashes_due_ms: u64,
}

impl Backoff {
    /// Nothing has died yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a death before readiness. Returns the wait until the next start in ms.
    ///
    /// Workers that are forked together die together: a death during the wait for another one is
    /// the same failure.
    pub fn failed_to_start(&mut self, now_ms: u64) -> u64 {
        if now_ms >= self.last_failure_ms.saturating_add(FORGET_AFTER_MS) {
            self.failures = 0;
        }
        if self.failures == 0 || self.may_start(now_ms) {
            self.failures = self.failures.saturating_add(1);
            self.last_failure_ms = now_ms;
            let wait_ms = starting_wait_ms(self.failures);
            self.not_before_ms = self.not_before_ms.max(now_ms.saturating_add(wait_ms));
        }
        self.wait_ms(now_ms)
    }

    /// Notes a death after readiness. Returns the wait until the successor may start in ms: 0
    /// unless it is a crash loop.
    pub fn crashed(&mut self, now_ms: u64) -> u64 {
        let tolerance_ms = CRASH_BURST * CRASH_INTERVAL_MS;
        self.crashes_due_ms = self.crashes_due_ms.max(now_ms).saturating_add(CRASH_INTERVAL_MS);
        let over_ms = self.crashes_due_ms.saturating_sub(now_ms.saturating_add(tolerance_ms));
        // Many deaths at once must not add up to a long wait.
        let wait_ms = over_ms.min(LONGEST_WAIT_MS);
        self.crashes_due_ms -= over_ms - wait_ms;
        self.not_before_ms = self.not_before_ms.max(now_ms.saturating_add(wait_ms));
        self.wait_ms(now_ms)
    }

    /// Notes that a request was served: starting works.
    pub fn served(&mut self) {
        self.failures = 0;
    }

    /// The remaining wait, in ms.
    pub fn wait_ms(&self, now_ms: u64) -> u64 {
        self.not_before_ms.saturating_sub(now_ms)
    }

    /// Whether a start is due.
    pub fn may_start(&self, now_ms: u64) -> bool {
        self.wait_ms(now_ms) == 0
    }

    /// Consecutive deaths while starting: 0 when all is well.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

fn starting_wait_ms(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_WAIT_MS << doublings).min(LONGEST_WAIT_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deaths_while_starting_double_the_wait_up_to_the_longest() {
        let (mut backoff, mut now_ms) = (Backoff::new(), 1_000);
        let waits = std::iter::from_fn(|| {
            let wait_ms = backoff.failed_to_start(now_ms);
            now_ms += wait_ms;
            Some(wait_ms)
        });
        let waits: Vec<_> = waits.take(12).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000, 5000]);
    }

    #[test]
    fn workers_that_die_together_count_as_one_failure() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.failed_to_start(100), 10);
        assert_eq!(backoff.failed_to_start(100), 10);
        assert_eq!(backoff.failed_to_start(103), 7);
        assert_eq!(backoff.failures(), 1);
    }

    #[test]
    fn a_served_request_forgets_earlier_failures() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.failed_to_start(0), 10);
        assert_eq!(backoff.failed_to_start(10), 20);
        backoff.served();
        assert_eq!(backoff.failed_to_start(30), 10);
    }

    #[test]
    fn a_calm_of_ten_seconds_forgets_earlier_failures() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.failed_to_start(0), 10);
        assert_eq!(backoff.failed_to_start(9_999), 20);
        assert_eq!(backoff.failed_to_start(9_999 + FORGET_AFTER_MS), 10);
    }

    #[test]
    fn a_death_while_serving_is_made_good_at_once() {
        let mut backoff = Backoff::new();
        for _ in 0..CRASH_BURST {
            assert_eq!(backoff.crashed(50), 0);
        }
        assert!(backoff.may_start(50));
    }

    #[test]
    fn a_crash_loop_is_slowed_to_the_limit_and_then_forgotten() {
        let (mut backoff, mut now_ms) = (Backoff::new(), 0);
        for _ in 0..CRASH_BURST {
            assert_eq!(backoff.crashed(now_ms), 0);
        }
        for _ in 0..20 {
            let wait_ms = backoff.crashed(now_ms);
            assert_eq!(wait_ms, CRASH_INTERVAL_MS);
            now_ms += wait_ms;
        }
        now_ms += CRASH_BURST * CRASH_INTERVAL_MS;
        assert_eq!(backoff.crashed(now_ms), 0);
    }

    #[derive(Debug, Clone, Copy)]
    enum ExitKind {
        Starting,
        Serving,
    }

    proptest! {
        #[test]
        fn without_a_reset_waits_after_failed_starts_never_fall(
            pauses in prop::collection::vec(0..FORGET_AFTER_MS - LONGEST_WAIT_MS, 1..40)
        ) {
            let (mut backoff, mut now_ms, mut last_ms) = (Backoff::new(), 0, 0);
            for pause_ms in pauses {
                let wait_ms = backoff.failed_to_start(now_ms);
                prop_assert!(wait_ms >= last_ms);
                last_ms = wait_ms;
                now_ms += wait_ms + pause_ms;
            }
        }

        #[test]
        fn no_wait_is_longer_than_the_longest(
            deaths in prop::collection::vec(
                (prop_oneof![Just(ExitKind::Starting), Just(ExitKind::Serving)], 0..3_000_u64), 0..600)
        ) {
            let (mut backoff, mut now_ms) = (Backoff::new(), 0);
            for (death, pause_ms) in deaths {
                let wait_ms = match death {
                    ExitKind::Starting => backoff.failed_to_start(now_ms),
                    ExitKind::Serving => backoff.crashed(now_ms),
                };
                prop_assert!(wait_ms <= LONGEST_WAIT_MS);
                now_ms += pause_ms;
            }
        }
    }
}
