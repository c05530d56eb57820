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
