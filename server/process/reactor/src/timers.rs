//! The table of sleeping tasks.
//!
//! Owned by [`crate::reactor`], filled by [`crate::timer`].

use crate::executor::TaskId;
use std::collections::{BTreeSet, HashMap};

/// Sleeping tasks by their wake-up time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(u64, u64)>,
    tasks: HashMap<u64, TaskId>,
    next: u64,
}

impl Timers {
    pub(crate) fn add(&mut self, at_ms: u64, task: TaskId) -> u64 {
        self.next += 1;
        self.by_time.insert((at_ms, self.next));
        self.tasks.insert(self.next, task);
        self.next
    }

    pub(crate) fn remove(&mut self, at_ms: u64, key: u64) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{current_task, run};

    #[test]
    fn tasks_are_woken_by_time_and_those_of_one_time_in_order() {
        run(async {
            let mut timers = Timers::default();
            let task = current_task();
            let keys = [30, 10, 20, 10].map(|at_ms| (at_ms, timers.add(at_ms, task)));
            assert_eq!(timers.next_ms(), Some(10));
            let mut woken = 0;
            for (now_ms, expected, next_ms) in
                [(9, 0, Some(10)), (10, 2, Some(20)), (29, 1, Some(30)), (30, 1, None)]
            {
                timers.expire(now_ms, |_| woken += 1);
                assert_eq!((woken, timers.next_ms()), (expected, next_ms), "at {now_ms}");
                woken = 0;
            }
            assert!(timers.tasks.is_empty());
            keys.into_iter().for_each(|(at_ms, key)| timers.remove(at_ms, key));
        })
        .unwrap();
    }

    #[test]
    fn a_removed_timer_wakes_no_task_and_leaves_those_of_its_time() {
        run(async {
            let mut timers = Timers::default();
            let [first, second] = [0; 2].map(|_| timers.add(5, current_task()));
            assert_ne!(first, second);
            timers.remove(5, first);
            timers.remove(5, first);
            let mut woken = 0;
            timers.expire(u64::MAX, |_| woken += 1);
            assert_eq!((woken, timers.tasks.len()), (1, 0));
        })
        .unwrap();
    }
}
