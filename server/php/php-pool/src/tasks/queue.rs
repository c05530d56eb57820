//! The unfinished tasks of an app, in the order in which they are due.
//!
//! Used by [`super::Tasks`] only; pure, with the time as a parameter. Invariants: a task waits or runs
//! from [`Queue::accept`] until [`Queue::settle`] reports its end, and counts against the limits all
//! the time; an accepted task is never refused later; it runs once at a time.

use outboard_trace::TraceContext;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The largest data of a task, and the largest result.
pub(super) const MAX_DATA_BYTES: usize = 16 << 20;

/// The memory of a task in addition to its name and data.
const TASK_OVERHEAD_BYTES: u64 = 256;

/// The longest back-off between two attempts.
const MAX_BACKOFF_MS: u64 = 3_600_000;

/// The most attempts that lose their worker: a task that kills each one must come to an end.
const MAX_LOSSES: u32 = 50;

/// Limits of the queue, and the back-off.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub length: usize,
    pub bytes: u64,
    /// The back-off after the first failed attempt.
    pub backoff_ms: u64,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub id: u64,
    pub name: Rc<[u8]>,
    pub data: Rc<[u8]>,
    /// Further attempts after a failed one.
    pub retries: u8,
    /// Attempts that were started.
    pub attempts: u32,
    /// Attempts whose worker was lost.
    pub losses: u32,
    /// The trace that its attempts are part of; not journaled.
    pub trace: Option<TraceContext>,
    /// Whether the request that has dispatched it was debugged; not journaled.
    pub is_debugged: bool,
}

impl Task {
    pub(super) fn new(id: u64, name: &[u8], data: Vec<u8>, retries: u8) -> Self {
        let (name, data) = (name.into(), data.into());
        Self { id, name, data, retries, attempts: 0, losses: 0, trace: None, is_debugged: false }
    }

    fn bytes(&self) -> u64 {
        TASK_OVERHEAD_BYTES + (self.name.len() + self.data.len()) as u64
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    Done,
    /// The handler has thrown, exited or taken too long.
    Failed,
    /// The worker has died; the task may be partly done.
    Lost,
    /// No worker has started it.
    NotBegun,
}

/// The consequence of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Settlement {
    /// The task has succeeded.
    Done,
    /// The task is tried again after so many ms.
    Retry(u64),
    /// The task has failed.
    GivenUp,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// See the module.
#[derive(Debug)]
pub(super) struct Queue {
    limits: Limits,
    /// By due time and order of acceptance.
    waiting: BTreeMap<(u64, u64), Task>,
    /// The number of tasks with reserved room.
    reserved: usize,
    running: HashMap<u64, Task>,
    bytes: u64,
    /// The part of `bytes` that waits.
    waiting_bytes: u64,
    accepted: u64,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        let (waiting, running) = (BTreeMap::new(), HashMap::new());
        Self { limits, waiting, reserved: 0, running, bytes: 0, waiting_bytes: 0, accepted: 0 }
    }

    /// Accepts a task that is due at `due_ms`.
    ///
    /// # Errors
    /// [`Full`]: the task is not accepted.
    pub(super) fn accept(&mut self, task: Task, due_ms: u64) -> Result<(), Full> {
        self.reserve(&task)?;
        self.release(&task);
        self.insert(task, due_ms);
        Ok(())
    }

    /// Reserves room for a task that is journaled first.
    ///
    /// # Errors
    /// [`Full`]: nothing is reserved.
    pub(super) fn reserve(&mut self, task: &Task) -> Result<(), Full> {
        let is_full = self.len() >= self.limits.length;
        if is_full || self.bytes.saturating_add(task.bytes()) > self.limits.bytes {
            return Err(Full);
        }
        self.reserved += 1;
        self.bytes += task.bytes();
        self.check();
        Ok(())
    }

    /// Releases reserved room, before the task is inserted or dropped.
    pub(super) fn release(&mut self, task: &Task) {
        self.reserved -= 1;
        self.bytes -= task.bytes();
        self.check();
    }

    /// Starts the first due task.
    pub(super) fn begin(&mut self, now_ms: u64) -> Option<Task> {
        let entry = self.waiting.first_entry().filter(|entry| entry.key().0 <= now_ms)?;
        let mut task = entry.remove();
        self.waiting_bytes -= task.bytes();
        task.attempts += 1;
        let earlier = self.running.insert(task.id, task.clone());
        debug_assert!(earlier.is_none(), "the task {:016x} runs already", task.id);
        self.check();
        Some(task)
    }

    /// Ends an attempt.
    pub(super) fn settle(&mut self, id: u64, attempt: Attempt, now_ms: u64) -> Settlement {
        let Some(mut task) = self.running.remove(&id) else { return Settlement::GivenUp };
        let wait_ms = match attempt {
            Attempt::Done => None,
            Attempt::NotBegun => {
                task.attempts -= 1;
                Some(self.limits.backoff_ms)
            }
            Attempt::Lost => {
                task.losses += 1;
                // A new worker is forked at once, so that no back-off is needed.
                (task.losses < MAX_LOSSES).then_some(0)
            }
            Attempt::Failed => {
                let failures = task.attempts - task.losses;
                (failures <= u32::from(task.retries)).then(|| self.backoff_ms(failures))
            }
        };
        match wait_ms {
            Some(wait_ms) => {
                self.bytes -= task.bytes();
                self.insert(task, now_ms + wait_ms);
                Settlement::Retry(wait_ms)
            }
            None => {
                self.bytes -= task.bytes();
                self.check();
                if attempt == Attempt::Done { Settlement::Done } else { Settlement::GivenUp }
            }
        }
    }

    fn backoff_ms(&self, failures: u32) -> u64 {
        let doubled = self.limits.backoff_ms.saturating_mul(1 << (failures - 1).min(32));
        doubled.min(MAX_BACKOFF_MS.max(self.limits.backoff_ms))
    }

    /// Inserts a task that was accepted before, beyond the limits if necessary.
    pub(super) fn insert(&mut self, task: Task, due_ms: u64) {
        self.bytes += task.bytes();
        self.waiting_bytes += task.bytes();
        self.accepted += 1;
        let earlier = self.waiting.insert((due_ms, self.accepted), task);
        debug_assert!(earlier.is_none(), "a task is lost that has the place of another");
        self.check();
    }

    /// When the first task is due.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((due_ms, _), _)| *due_ms)
    }

    /// Takes over the waiting tasks of another queue, beyond the limits if necessary. They may be
    /// numerous, so the map is taken as it is, and the few tasks of this queue are inserted behind them.
    pub(super) fn take_over(&mut self, other: &mut Self) {
        let own = std::mem::replace(&mut self.waiting, std::mem::take(&mut other.waiting));
        let own_bytes = std::mem::replace(&mut self.waiting_bytes, other.waiting_bytes);
        other.bytes -= std::mem::take(&mut other.waiting_bytes);
        self.bytes = self.bytes - own_bytes + self.waiting_bytes;
        self.accepted = self.accepted.max(other.accepted);
        for ((due_ms, _), task) in own {
            self.insert(task, due_ms);
        }
        other.check();
    }

    /// Removes the waiting tasks that `stays` does not hold for; each with the time when it is due.
    pub(super) fn take_all_but(&mut self, stays: impl Fn(&Task) -> bool) -> Vec<(u64, Task)> {
        let taken = self.waiting.extract_if(.., |_, task| !stays(task));
        let taken: Vec<_> = taken.map(|((due_ms, _), task)| (due_ms, task)).collect();
        let bytes: u64 = taken.iter().map(|(_, task)| task.bytes()).sum();
        self.bytes -= bytes;
        self.waiting_bytes -= bytes;
        self.check();
        taken
    }

    /// Removes all waiting tasks.
    pub(super) fn clear(&mut self) -> BTreeMap<(u64, u64), Task> {
        self.bytes -= std::mem::take(&mut self.waiting_bytes);
        let waiting = std::mem::take(&mut self.waiting);
        self.check();
        waiting
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// That the bytes can be those of the tasks, without looking at each.
    fn check(&self) {
        let least_bytes = |tasks: usize| tasks as u64 * TASK_OVERHEAD_BYTES;
        debug_assert!(self.waiting_bytes <= self.bytes, "{self:?}");
        debug_assert!(self.waiting_bytes >= least_bytes(self.waiting.len()), "{self:?}");
        debug_assert!(self.bytes >= least_bytes(self.len()), "{self:?}");
        debug_assert!(self.waiting_bytes == 0 || !self.waiting.is_empty(), "{self:?}");
        debug_assert!(self.bytes == 0 || self.len() > 0, "{self:?}");
    }

    fn len(&self) -> usize {
        self.waiting.len() + self.reserved + self.running.len()
    }
}

#[cfg(test)]
mod tests;
