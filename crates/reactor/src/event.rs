//! A flag that one task sets and another waits for.
//!
//! Called wherever tasks of one loop tell each other that something changed. Invariant: a set
//! that nobody waits for is kept until the next wait.

use crate::executor::{TaskId, current_task};
use crate::reactor::wake;
use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

/// Wakes one waiting task; shared as `Rc<Event>`.
#[derive(Debug, Default)]
pub struct Event {
    set: Cell<bool>,
    waiting: Cell<Option<TaskId>>,
}

impl Event {
    /// Sets the flag and wakes the waiting task.
    pub fn set(&self) {
        self.set.set(true);
        if let Some(task) = self.waiting.take() {
            wake(task);
        }
    }

    /// Forgets a set that nobody waited for.
    pub fn clear(&self) {
        self.set.set(false);
    }

    /// Whether the flag was set; clears it. Otherwise the current task is woken when it is.
    pub fn poll(&self) -> Poll<()> {
        if self.set.take() {
            return Poll::Ready(());
        }
        self.waiting.set(Some(current_task()));
        Poll::Pending
    }

    /// Waits until the flag is set and clears it.
    pub async fn wait(&self) {
        poll_fn(|_| self.poll()).await;
    }
}
