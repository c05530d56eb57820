//! The tasks of an app that are not done yet, in the order in which they are due.
//!
//! Used by [`super::Tasks`] alone; pure, with the time passed in. Invariants: a task is waiting or
//! running from [`Queue::accept`] until [`Queue::settle`] says that it is over, and counts against
//! the bounds all that time; what was accepted is never refused again.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Beside its name and data: what the maps need for it.
const TASK_OVERHEAD_BYTES: u64 = 256;

/// Longest wait between two attempts.
const LONGEST_BACKOFF_MS: u64 = 3_600_000;

/// Attempts that may cost a worker its life: a task that kills each one must not go on for ever.
const MOST_LOSSES: u32 = 50;

/// How many tasks, and how long they wait.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub length: usize,
    pub bytes: u64,
    /// Between the first failed attempt and the next.
    pub backoff_ms: u64,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub id: u64,
    pub name: Rc<[u8]>,
    pub data: Rc<[u8]>,
    /// Further attempts after one that failed.
    pub retries: u8,
    /// Attempts that have begun.
    pub attempts: u32,
    /// Those whose worker was lost.
    pub losses: u32,
}

impl Task {
    pub(super) fn new(id: u64, name: &[u8], data: Vec<u8>, retries: u8) -> Self {
        Self { id, name: name.into(), data: data.into(), retries, attempts: 0, losses: 0 }
    }

    fn bytes(&self) -> u64 {
        TASK_OVERHEAD_BYTES + (self.name.len() + self.data.len()) as u64
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    Done,
    /// The handler threw, exited or took too long.
    Failed,
    /// The worker has gone with it; nobody knows how far it came.
    Lost,
    /// No worker has begun it.
    NotBegun,
}

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Settled {
    /// It is over, as it should be.
    Done,
    /// It is tried again, so many ms from now.
    Again(u64),
    /// It is over without success.
    GivenUp,
}

/// There is no room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// See the module.
#[derive(Debug)]
pub(super) struct Queue {
    limits: Limits,
    /// By time and by order of acceptance.
    waiting: BTreeMap<(u64, u64), Task>,
    /// Tasks that have room and are not here yet.
    expected: usize,
    running: HashMap<u64, Task>,
    bytes: u64,
    /// Of these, those of `waiting`.
    waiting_bytes: u64,
    accepted: u64,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        let (waiting, running) = (BTreeMap::new(), HashMap::new());
        Self { limits, waiting, expected: 0, running, bytes: 0, waiting_bytes: 0, accepted: 0 }
    }

    /// Takes a task that is due at `due_ms`.
    ///
    /// # Errors
    /// [`Full`]: it was not taken.
    pub(super) fn accept(&mut self, task: Task, due_ms: u64) -> Result<(), Full> {
        self.expect(&task)?;
        self.arrive(&task);
        self.put(task, due_ms);
        Ok(())
    }

    /// Keeps room for a task that has to be written down first.
    ///
    /// # Errors
    /// [`Full`]: there is none.
    pub(super) fn expect(&mut self, task: &Task) -> Result<(), Full> {
        let is_full = self.len() >= self.limits.length;
        if is_full || self.bytes.saturating_add(task.bytes()) > self.limits.bytes {
            return Err(Full);
        }
        self.expected += 1;
        self.bytes += task.bytes();
        Ok(())
    }

    /// Gives back the room that was kept: the task comes, or does not.
    pub(super) fn arrive(&mut self, task: &Task) {
        self.expected -= 1;
        self.bytes -= task.bytes();
    }

    /// The first that is due; it counts as running.
    pub(super) fn begin(&mut self, now_ms: u64) -> Option<Task> {
        let entry = self.waiting.first_entry().filter(|entry| entry.key().0 <= now_ms)?;
        let mut task = entry.remove();
        self.waiting_bytes -= task.bytes();
        task.attempts += 1;
        self.running.insert(task.id, task.clone());
        Some(task)
    }

    /// Says how an attempt has ended.
    pub(super) fn settle(&mut self, id: u64, attempt: Attempt, now_ms: u64) -> Settled {
        let Some(mut task) = self.running.remove(&id) else { return Settled::GivenUp };
        let wait_ms = match attempt {
            Attempt::Done => None,
            Attempt::NotBegun => {
                task.attempts -= 1;
                Some(self.limits.backoff_ms)
            }
            Attempt::Lost => {
                task.losses += 1;
                // A fresh worker is there in a moment, so the next attempt is at once.
                (task.losses < MOST_LOSSES).then_some(0)
            }
            Attempt::Failed => {
                let failures = task.attempts - task.losses;
                (failures <= u32::from(task.retries)).then(|| self.backoff_ms(failures))
            }
        };
        match wait_ms {
            Some(wait_ms) => {
                self.bytes -= task.bytes();
                self.put(task, now_ms + wait_ms);
                Settled::Again(wait_ms)
            }
            None => {
                self.bytes -= task.bytes();
                if attempt == Attempt::Done { Settled::Done } else { Settled::GivenUp }
            }
        }
    }

    fn backoff_ms(&self, failures: u32) -> u64 {
        let doubled = self.limits.backoff_ms.saturating_mul(1 << (failures - 1).min(32));
        doubled.min(LONGEST_BACKOFF_MS.max(self.limits.backoff_ms))
    }

    /// Takes a task that was accepted before, beyond the bounds if need be.
    pub(super) fn put(&mut self, task: Task, due_ms: u64) {
        self.bytes += task.bytes();
        self.waiting_bytes += task.bytes();
        self.accepted += 1;
        self.waiting.insert((due_ms, self.accepted), task);
    }

    /// When the first is due.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((due_ms, _), _)| *due_ms)
    }

    /// Takes over what waits in another one, beyond the bounds if need be. That may be very much, so it
    /// is taken as it is, and the few tasks that are here already are put behind it.
    pub(super) fn inherit(&mut self, other: &mut Self) {
        let own = std::mem::replace(&mut self.waiting, std::mem::take(&mut other.waiting));
        let own_bytes = std::mem::replace(&mut self.waiting_bytes, other.waiting_bytes);
        other.bytes -= std::mem::take(&mut other.waiting_bytes);
        self.bytes = self.bytes - own_bytes + self.waiting_bytes;
        self.accepted = self.accepted.max(other.accepted);
        for ((due_ms, _), task) in own {
            self.put(task, due_ms);
        }
    }

    /// Gives up what waits.
    pub(super) fn clear(&mut self) -> BTreeMap<(u64, u64), Task> {
        self.bytes -= std::mem::take(&mut self.waiting_bytes);
        std::mem::take(&mut self.waiting)
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

    fn len(&self) -> usize {
        self.waiting.len() + self.expected + self.running.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(length: usize) -> Queue {
        Queue::new(Limits { length, bytes: 10_000, backoff_ms: 100 })
    }

    fn task(id: u64, retries: u8) -> Task {
        Task::new(id, b"mail", vec![7; 100], retries)
    }

    #[test]
    fn tasks_begin_when_they_are_due_in_the_order_of_acceptance() {
        let mut queue = queue(10);
        for (id, due_ms) in [(1, 50), (2, 10), (3, 10), (4, 0)] {
            queue.accept(task(id, 0), due_ms).unwrap();
        }
        assert_eq!(queue.due_ms(), Some(0));
        let begun: Vec<u64> = std::iter::from_fn(|| queue.begin(10)).map(|task| task.id).collect();
        assert_eq!((begun, queue.due_ms()), (vec![4, 2, 3], Some(50)));
    }

    #[test]
    fn failures_wait_twice_as_long_each_time_and_end_with_the_retries() {
        let mut queue = queue(10);
        queue.accept(task(1, 2), 0).unwrap();
        let mut settled = Vec::new();
        while let Some(task) = queue.begin(10_000) {
            settled.push(queue.settle(task.id, Attempt::Failed, 0));
        }
        assert_eq!(settled, [Settled::Again(100), Settled::Again(200), Settled::GivenUp]);
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn a_lost_worker_costs_no_retry_and_yet_not_without_end() {
        let mut queue = queue(10);
        queue.accept(task(1, 0), 0).unwrap();
        let mut attempts = 0;
        while let Some(task) = queue.begin(0) {
            attempts += 1;
            let _ = queue.settle(task.id, Attempt::Lost, 0);
        }
        assert_eq!(attempts, MOST_LOSSES);
    }

    #[test]
    fn what_no_worker_has_begun_is_no_attempt() {
        let mut queue = queue(10);
        queue.accept(task(1, 0), 0).unwrap();
        for now_ms in [0, 100, 200] {
            let task = queue.begin(now_ms).unwrap();
            assert_eq!(task.attempts, 1);
            assert_eq!(queue.settle(task.id, Attempt::NotBegun, now_ms), Settled::Again(100));
        }
    }

    #[test]
    fn a_full_queue_refuses_by_number_and_by_memory() {
        let mut by_number = queue(2);
        by_number.accept(task(1, 0), 0).unwrap();
        by_number.accept(task(2, 0), 0).unwrap();
        by_number.begin(0).unwrap();
        assert_eq!(by_number.accept(task(3, 0), 0), Err(Full));
        let mut by_memory = queue(100);
        let large = Task::new(1, b"large", vec![0; 9_000], 0);
        by_memory.accept(large.clone(), 0).unwrap();
        assert_eq!(by_memory.accept(large, 0), Err(Full));
        by_memory.accept(task(2, 0), 0).unwrap();
    }

    #[test]
    fn a_successor_takes_over_what_waits_before_its_own() {
        let (mut old, mut new) = (queue(10), queue(1));
        (1..4).for_each(|id| old.accept(task(id, 0), 0).unwrap());
        let running = old.begin(0).unwrap();
        new.accept(task(9, 0), 0).unwrap();
        new.inherit(&mut old);
        assert_eq!((old.len(), new.waiting()), (1, 3));
        assert_eq!(old.settle(running.id, Attempt::Done, 0), Settled::Done);
        assert_eq!(old.bytes(), 0);
        let begun: Vec<u64> = std::iter::from_fn(|| new.begin(0)).map(|task| task.id).collect();
        assert_eq!(begun, [2, 3, 9]);
        begun.iter().for_each(|id| assert_eq!(new.settle(*id, Attempt::Done, 0), Settled::Done));
        assert_eq!(new.bytes(), 0);
    }

    proptest! {
        #[test]
        fn whatever_happens_what_was_accepted_comes_to_an_end_and_the_memory_is_given_back(
            steps in prop::collection::vec(0_u8..5, 1..200),
        ) {
            let mut queue = queue(20);
            let (mut now_ms, mut accepted, mut over) = (0, 0_u64, 0_u64);
            let mut running = Vec::new();
            let mut end = |queue: &mut Queue, id, attempt, now_ms| {
                match queue.settle(id, attempt, now_ms) {
                    Settled::Again(_) => {}
                    Settled::Done | Settled::GivenUp => over += 1,
                }
            };
            for step in steps {
                now_ms += 50;
                match step {
                    0 | 1 => accepted += u64::from(queue.accept(task(now_ms, 1), now_ms).is_ok()),
                    2 => running.extend(queue.begin(now_ms).map(|task| task.id)),
                    3 => if let Some(id) = running.pop() { end(&mut queue, id, Attempt::Failed, now_ms) },
                    _ => if let Some(id) = running.pop() { end(&mut queue, id, Attempt::Lost, now_ms) },
                }
                prop_assert!(queue.len() <= 20 && queue.bytes() <= 10_000);
            }
            running.into_iter().for_each(|id| end(&mut queue, id, Attempt::Done, now_ms));
            while let Some(task) = queue.begin(u64::MAX) {
                end(&mut queue, task.id, Attempt::Done, now_ms);
            }
            prop_assert_eq!((accepted, queue.bytes()), (over, 0));
        }
    }
}
