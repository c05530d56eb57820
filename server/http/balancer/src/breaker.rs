//! [`CircuitBreaker`]: refuses requests at once while too many fail.
//!
//! Owned by a group, asked before each request. Invariant: while it is open, one request per `open_ms` is a
//! trial; its outcome closes or opens it.

use outboard_config::Breaker;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    rules: Breaker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    since_ms: u64,
    attempts: u32,
    failures: u32,
    /// 0: closed.
    open_until_ms: u64,
    /// When the present trial began; 0: there is none.
    trial_ms: u64,
}

impl CircuitBreaker {
    pub(crate) fn new(rules: Breaker) -> Self {
        Self { rules, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request may be sent.
    pub(crate) fn admits(&self, now_ms: u64) -> bool {
        let mut state = self.lock();
        if state.open_until_ms == 0 {
            return true;
        }
        if now_ms < state.open_until_ms {
            return false;
        }
        // A trial without an outcome does not keep it open.
        state.open_until_ms = now_ms + self.rules.open_ms;
        state.trial_ms = now_ms.max(1);
        true
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().open_until_ms != 0
    }

    /// An attempt that began at `sent_ms` has ended. True if it has opened the breaker.
    pub(crate) fn record(&self, has_failed: bool, sent_ms: u64, now_ms: u64) -> bool {
        let mut state = self.lock();
        if state.open_until_ms != 0 {
            let is_trial = state.trial_ms != 0 && sent_ms >= state.trial_ms;
            match (is_trial, has_failed) {
                (true, false) => *state = State { since_ms: now_ms, ..State::default() },
                (true, true) => state.open_until_ms = now_ms + self.rules.open_ms,
                (false, _) => {}
            }
            return false;
        }
        if now_ms >= state.since_ms + self.rules.window_ms {
            *state = State { since_ms: now_ms, ..State::default() };
        }
        state.attempts += 1;
        state.failures += u32::from(has_failed);
        let is_rate = u64::from(state.failures) * 100
            >= u64::from(state.attempts) * u64::from(self.rules.failure_percent);
        let opens = has_failed && state.attempts >= self.rules.min_requests && is_rate;
        if opens {
            state.open_until_ms = now_ms + self.rules.open_ms;
        }
        opens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> CircuitBreaker {
        let rules =
            Breaker { failure_percent: 50, window_ms: 1_000, min_requests: 4, open_ms: 500 };
        CircuitBreaker::new(rules)
    }

    #[test]
    fn it_opens_at_the_rate_and_not_before_enough_attempts() {
        let breaker = breaker();
        assert!(!breaker.record(true, 0, 0) && !breaker.record(true, 1, 1));
        assert!(!breaker.record(false, 2, 2) && breaker.admits(2));
        assert!(breaker.record(true, 3, 3));
        assert!(!breaker.admits(502));
    }

    #[test]
    fn a_new_window_counts_from_zero() {
        let breaker = breaker();
        (0..3).for_each(|now_ms| assert!(!breaker.record(true, now_ms, now_ms)));
        assert!(!breaker.record(true, 2_000, 2_000));
        assert!(breaker.admits(2_000));
    }

    #[test]
    fn the_outcome_of_a_trial_closes_or_opens_it() {
        let breaker = breaker();
        let opened = (0..4).map(|now_ms| breaker.record(true, now_ms, now_ms));
        assert_eq!(opened.collect::<Vec<_>>(), [false, false, false, true]);
        assert!(breaker.admits(503), "the trial");
        assert!(!breaker.admits(503), "a single one");
        breaker.record(false, 1, 504);
        assert!(breaker.is_open(), "that request began before");
        breaker.record(true, 503, 600);
        assert!(!breaker.admits(1_099) && breaker.admits(1_100));
        breaker.record(false, 1_100, 1_200);
        assert!(!breaker.is_open() && breaker.admits(1_200));
    }
}
