//! A flag that one task sets and another waits for.
//!
//! Used between tasks of one event loop. Invariants: a set flag stays set until the next wait; no task
//! waits while it is set. The last task that waits is woken.

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
        let was_set = self.set.replace(true);
        debug_assert!(!was_set || self.waiting.get().is_none(), "a task waits for a set flag");
        if let Some(task) = self.waiting.take() {
            wake(task);
        }
    }

    /// Clears the flag.
    pub fn clear(&self) {
        self.set.set(false);
    }

    /// Whether the flag was set, and clears it. Otherwise the current task is woken when it is set.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{run, spawn, yield_now};
    use std::rc::Rc;

    #[test]
    fn a_flag_that_is_set_before_the_wait_ends_one_wait() {
        run(async {
            let event = Event::default();
            event.set();
            event.set();
            event.wait().await;
            assert!(event.poll().is_pending(), "two calls set one flag");
            event.set();
            event.clear();
            assert!(event.poll().is_pending());
        })
        .unwrap();
    }

    #[test]
    fn the_last_task_that_waits_is_woken() {
        run(async {
            let event = Rc::new(Event::default());
            let (begun, woken) = (Rc::new(Cell::new(0)), Rc::new(Cell::new("")));
            for name in ["first", "last"] {
                let (event, begun, woken) = (event.clone(), begun.clone(), woken.clone());
                spawn(async move {
                    begun.set(begun.get() + 1);
                    event.wait().await;
                    woken.set(name);
                });
            }
            while begun.get() < 2 {
                yield_now().await;
            }
            event.set();
            while woken.get().is_empty() {
                yield_now().await;
            }
            assert_eq!(woken.get(), "last");
        })
        .unwrap();
    }
}
