//! Timers: exact sleeps, and one coarse deadline per task for timeouts.
//!
//! Called by tasks. Setting a deadline costs one store, and deadlines are checked every 20 ms,
//! which suits timeouts of seconds on many thousand connections. [`sleep`] is exact to the
//! millisecond.

use crate::executor::current_task;
use crate::reactor::{now_ms, with};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Removes the timer when the sleeping future is dropped early.
struct Entry {
    at_ms: u64,
    key: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        with(|reactor| reactor.timers.borrow_mut().remove(self.at_ms, self.key));
    }
}

/// Waits for `ms` milliseconds.
pub async fn sleep(ms: u64) {
    let at_ms = now_ms() + ms;
    let mut entry: Option<Entry> = None;
    poll_fn(|_| {
        if now_ms() >= at_ms {
            return Poll::Ready(());
        }
        entry.get_or_insert_with(|| {
            let key = with(|r| r.timers.borrow_mut().add(at_ms, current_task()));
            Entry { at_ms, key }
        });
        Poll::Pending
    })
    .await;
}

/// A deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

/// Wakes the current task at `at_ms` (monotonic), replacing an earlier deadline.
pub fn set_deadline(at_ms: u64) {
    with(|reactor| reactor.executor.borrow_mut().set_deadline(current_task(), at_ms));
}

/// Removes the deadline of the current task.
pub fn clear_deadline() {
    set_deadline(u64::MAX);
}

/// The deadline of the current task; `u64::MAX` if it has none.
pub fn deadline_ms() -> u64 {
    with(|reactor| reactor.executor.borrow_mut().deadline(current_task()))
}

/// Whether the current task's deadline has passed.
pub fn deadline_passed() -> bool {
    deadline_ms() <= now_ms()
}

/// Runs `future` until `at_ms` at most. Deadlines do not nest: the innermost one applies.
///
/// # Errors
/// [`Elapsed`] if the deadline came first.
pub async fn with_deadline<F: Future>(at_ms: u64, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    set_deadline(at_ms);
    let result = poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        if deadline_passed() { Poll::Ready(Err(Elapsed)) } else { Poll::Pending }
    })
    .await;
    clear_deadline();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, run, spawn};
    use std::future::{pending, ready};
    use std::rc::Rc;

    #[test]
    fn a_sleep_that_is_dropped_early_leaves_no_timer() {
        run(async {
            let mut asleep = Box::pin(sleep(60_000));
            let poll = poll_fn(|context| Poll::Ready(asleep.as_mut().poll(context))).await;
            assert!(poll.is_pending());
            assert!(with(|reactor| reactor.timers.borrow().next_ms()).is_some());
            drop(asleep);
            assert_eq!(with(|reactor| reactor.timers.borrow().next_ms()), None);
        })
        .unwrap();
    }

    #[test]
    fn a_future_that_is_ready_wins_against_a_deadline_in_the_past() {
        run(async {
            assert_eq!(with_deadline(0, ready(7)).await, Ok(7));
            assert_eq!(with_deadline(0, pending::<()>()).await, Err(Elapsed));
            assert_eq!(deadline_ms(), u64::MAX, "neither leaves a deadline");
            assert!(!deadline_passed());
        })
        .unwrap();
    }

    #[test]
    fn a_deadline_is_that_of_its_task_only() {
        run(async {
            set_deadline(0);
            assert!(deadline_passed());
            let (seen, done) = (Rc::new(std::cell::Cell::new(0)), Rc::new(Event::default()));
            let (of_task, is_done) = (seen.clone(), done.clone());
            spawn(async move {
                of_task.set(deadline_ms());
                is_done.set();
            });
            done.wait().await;
            assert_eq!(seen.get(), u64::MAX);
            clear_deadline();
            assert!(!deadline_passed());
        })
        .unwrap();
    }
}
