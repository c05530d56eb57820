//! Time: precise timers for sleeps, and one coarse deadline a task for time-outs.
//!
//! Called by tasks. A deadline costs one store to set and is looked at every 20 ms, which is what
//! time-outs of seconds on many thousand connections need; [`sleep`] is exact to the millisecond.

use crate::executor::{TaskId, current_task};
use crate::reactor::{now_ms, with};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Sleeping tasks by the time they want to be woken.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(u64, u64)>,
    tasks: std::collections::HashMap<u64, TaskId>,
    next: u64,
}

impl Timers {
    fn add(&mut self, at_ms: u64, task: TaskId) -> u64 {
        self.next += 1;
        self.by_time.insert((at_ms, self.next));
        self.tasks.insert(self.next, task);
        self.next
    }

    fn remove(&mut self, at_ms: u64, key: u64) {
        self.by_time.remove(&(at_ms, key));
        self.tasks.remove(&key);
    }

    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.by_time.first().map(|(at_ms, _)| *at_ms)
    }

    pub(crate) fn expire(&mut self, now_ms: u64, mut wake: impl FnMut(TaskId)) {
        while let Some((at_ms, key)) = self.by_time.first().copied()
            && at_ms <= now_ms
        {
            self.by_time.remove(&(at_ms, key));
            if let Some(task) = self.tasks.remove(&key) {
                wake(task);
            }
        }
    }
}

/// Takes its entry back when the sleeping future is dropped early.
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

/// Has the current task woken at `at_ms` (monotonic), replacing an earlier deadline.
pub fn set_deadline(at_ms: u64) {
    with(|reactor| reactor.executor.borrow_mut().set_deadline(current_task(), at_ms));
}

/// Takes the current task's deadline back.
pub fn clear_deadline() {
    set_deadline(u64::MAX);
}

/// The current task's deadline; `u64::MAX` when it has none.
pub fn deadline_ms() -> u64 {
    with(|reactor| reactor.executor.borrow_mut().deadline(current_task()))
}

/// Whether the current task's deadline has passed.
pub fn deadline_passed() -> bool {
    deadline_ms() <= now_ms()
}

/// Runs `future` until `at_ms` at most. Deadlines do not nest: the innermost one counts.
///
/// # Errors
/// [`Elapsed`] when the time came first.
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
