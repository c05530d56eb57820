//! What a task may do before others have their turn.
//!
//! Renewed by the loop before each poll, spent by reads, writes and other work through input that
//! a peer may fill without end. Invariant: a socket that can always be read or written keeps its
//! task no longer than the budget lasts; then the socket says that it would block, and waiting for it
//! is over in the next turn.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Bytes of a poll: they take about a tenth of a millisecond.
const BYTES: usize = 256 * 1024;
/// What an operation takes however few its bytes are: a system call.
const OPERATION_BYTES: usize = 4 * 1024;
/// The time of a poll. Small frames and requests take longer than their bytes.
const TIME: Duration = Duration::from_micros(200);
/// Work between two looks at the clock; a poll that does less than that reads no clock.
const BYTES_PER_CHECK: usize = 16 * 1024;
const _: () = assert!(OPERATION_BYTES <= BYTES_PER_CHECK && 2 * BYTES_PER_CHECK <= BYTES);

/// What is left in a poll.
#[derive(Debug, Clone, Copy)]
struct Left {
    bytes: usize,
    /// The clock is read when `bytes` falls to this.
    check_at: usize,
    /// When the first [`BYTES_PER_CHECK`] were spent.
    started: Option<Instant>,
}

impl Left {
    const WHOLE: Self = Self { bytes: BYTES, check_at: BYTES - BYTES_PER_CHECK, started: None };

    fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes.max(OPERATION_BYTES));
        if self.bytes <= self.check_at {
            self.check_at = self.bytes.saturating_sub(BYTES_PER_CHECK);
            let started = *self.started.get_or_insert_with(Instant::now);
            if started.elapsed() >= TIME {
                self.bytes = 0;
            }
        }
        debug_assert!(self.bytes == 0 || self.bytes > self.check_at, "the clock is not read again");
    }
}

thread_local! {
    /// `None` outside of tasks.
    static LEFT: Cell<Option<Left>> = const { Cell::new(None) };
}

/// Runs one poll of a task with a budget of its own. Returns in addition whether the poll did more
/// than a request or two take.
pub(crate) fn with_budget<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    let _outer = Outer(LEFT.replace(Some(Left::WHOLE)));
    let result = poll();
    (result, LEFT.get().is_some_and(|left| left.started.is_some()))
}

/// Runs what looks at a socket once, whatever is left of the budget.
pub fn without_budget<T>(look: impl FnOnce() -> T) -> T {
    let _outer = Outer(LEFT.take());
    look()
}

/// Puts the outer budget back, however the inner work ends.
struct Outer(Option<Left>);

impl Drop for Outer {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Counts work that takes about as long as moving so many bytes.
pub fn spend(bytes: usize) {
    if let Some(mut left) = LEFT.get() {
        left.spend(bytes);
        LEFT.set(Some(left));
    }
}

/// How many bytes may still be moved.
pub(crate) fn left() -> usize {
    LEFT.get().map_or(usize::MAX, |left| left.bytes)
}

/// Whether the current task has to let others go on.
pub fn is_spent() -> bool {
    left() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_after_its_bytes() {
        let ((), is_long) = with_budget(|| {
            spend(BYTES - 1);
            assert!(!is_spent());
            spend(1);
            assert!(is_spent());
        });
        assert!(is_long);
    }

    #[test]
    fn a_budget_ends_after_its_time_however_few_its_bytes_are() {
        let mut left = Left::WHOLE;
        for _ in 0..3 {
            left.spend(1);
        }
        assert_eq!(left.started, None, "a request or two read no clock");
        left.spend(1);
        assert!(left.started.is_some());
        left.started = Some(Instant::now() - TIME);
        let few = BYTES_PER_CHECK / OPERATION_BYTES;
        for _ in 0..few {
            assert!(left.bytes > 0);
            left.spend(1);
        }
        assert_eq!(left.bytes, 0);
    }

    #[test]
    fn a_look_without_a_budget_leaves_it_as_it_was() {
        let _ = with_budget(|| {
            without_budget(|| spend(usize::MAX));
            assert_eq!(left(), BYTES);
        });
    }

    #[test]
    fn a_panic_within_a_budget_gives_the_outer_one_back() {
        let _ = with_budget(|| {
            spend(BYTES_PER_CHECK);
            let before = left();
            let panicked = std::panic::catch_unwind(|| {
                with_budget(|| {
                    spend(usize::MAX);
                    panic!("in the test: a poll panics");
                })
            });
            assert!(panicked.is_err());
            assert_eq!(left(), before);
        });
        assert_eq!(left(), usize::MAX, "there is none outside of tasks");
    }

    #[test]
    fn a_request_or_two_are_a_short_poll() {
        for (operations, expected) in [(0, false), (1, false), (3, false), (4, true)] {
            let ((), is_long) = with_budget(|| (0..operations).for_each(|_| spend(0)));
            assert_eq!(is_long, expected, "{operations} operations");
        }
    }
}
