//! [`Pace`]: how soon the next snapshot may be started, so that an application that retires them all the time
//! does not occupy a processor with starts.
//!
//! Asked by the renewal. Invariant: a few starts in a row are never delayed; more take at most half of the
//! time, and there is no more than one a second.

use std::collections::VecDeque;

/// So many starts within [`INTERVAL_MS`] are not delayed.
const FREE_STARTS: usize = 5;
const INTERVAL_MS: u64 = 10_000;
/// The shortest pause before any other.
const PAUSE_MS: u64 = 1_000;
/// The pause before another attempt of a start that failed; each is twice the one before.
const RETRY_MS: u64 = 1_000;
const RETRY_MAX_MS: u64 = 60_000;
const _: () = assert!(PAUSE_MS >= 1_000, "there is no more than one start a second");
const _: () =
    assert!(FREE_STARTS as u64 * PAUSE_MS < INTERVAL_MS, "a storm would end while it goes on");

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pace {
    starts_ms: VecDeque<u64>,
    last_took_ms: u64,
    last_ended_ms: u64,
    failures: u32,
    is_storm: bool,
}

impl Pace {
    /// When the next start may begin, and whether a storm of them begins with it.
    pub(super) fn next_ms(&mut self, now_ms: u64) -> (u64, bool) {
        while self.starts_ms.front().is_some_and(|at_ms| at_ms + INTERVAL_MS <= now_ms) {
            self.starts_ms.pop_front();
        }
        if self.starts_ms.len() < FREE_STARTS {
            self.is_storm &= !self.starts_ms.is_empty();
            return (now_ms, false);
        }
        let begins = !std::mem::replace(&mut self.is_storm, true);
        (self.last_ended_ms + self.last_took_ms.max(PAUSE_MS), begins)
    }

    /// A start has ended.
    pub(super) fn ended(&mut self, began_ms: u64, now_ms: u64, has_succeeded: bool) {
        debug_assert!(
            self.starts_ms.back().is_none_or(|last_ms| *last_ms <= began_ms) && began_ms <= now_ms,
            "starts end in the order in which they have begun"
        );
        self.starts_ms.push_back(began_ms);
        self.last_took_ms = now_ms.saturating_sub(began_ms);
        self.last_ended_ms = now_ms;
        self.failures = if has_succeeded { 0 } else { self.failures.saturating_add(1) };
    }

    /// When a start that failed is tried again; `None` if the last one has succeeded.
    pub(super) fn retry_ms(&self) -> Option<u64> {
        let doublings = self.failures.checked_sub(1)?.min(16);
        Some(self.last_ended_ms + (RETRY_MS << doublings).min(RETRY_MAX_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_of_retirements_is_one_start_a_second() {
        let (mut pace, mut now_ms, mut starts, mut storms) = (Pace::default(), 1_000, 0, 0);
        while now_ms < 61_000 {
            let (at_ms, begins) = pace.next_ms(now_ms);
            storms += u32::from(begins);
            now_ms = at_ms.max(now_ms);
            pace.ended(now_ms, now_ms + 100, true);
            starts += 1;
            now_ms += 100;
        }
        assert!((50..=60).contains(&starts), "{starts}");
        assert_eq!(storms, 1, "it is logged once");
    }

    #[test]
    fn slow_starts_take_half_of_the_time() {
        let mut pace = Pace::default();
        for number in 0..FREE_STARTS as u64 {
            pace.ended(number, number + 1_500, true);
        }
        let (at_ms, begins) = pace.next_ms(1_510);
        assert!(begins && at_ms == FREE_STARTS as u64 - 1 + 3_000, "{at_ms}");
    }

    #[test]
    fn starts_now_and_then_are_not_delayed() {
        let mut pace = Pace::default();
        for now_ms in (0..100_000).step_by(2_500) {
            assert_eq!(pace.next_ms(now_ms), (now_ms, false));
            pace.ended(now_ms, now_ms + 300, true);
        }
    }

    #[test]
    fn a_failed_start_is_tried_again_after_doubling_pauses() {
        let mut pace = Pace::default();
        assert_eq!(pace.retry_ms(), None);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pace.ended(0, 0, false);
            pauses.extend(pace.retry_ms());
        }
        assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        pace.ended(0, 0, true);
        assert_eq!(pace.retry_ms(), None);
    }
}
