//! The tasks of the event loop, and the queue of tasks to poll.
//!
//! Called by [`crate::reactor`]. Invariants: a task is in one of both queues at most once; long ones
//! wait apart, so that they never stand before a short one that has news. A task is long if its last
//! poll was, or if it is one of many that a worker may start at once.

use crate::budget::with_budget;
use slab::Slab;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Identifies a task. An id of a finished task is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId {
    index: u32,
    generation: u32,
}

type BoxedFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The parts of a task that are needed to poll it.
pub(crate) struct PolledTask {
    pub(crate) future: BoxedFuture,
    pub(crate) waker: Waker,
    /// Whether a panic ends only this task.
    pub(crate) is_contained: bool,
}

/// How a task stands against others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// It waits with the long ones while its last poll was long.
    Foreground,
    /// It always waits with the long ones.
    Background,
}

struct Task {
    /// `None` while the task is polled.
    future: Option<PolledTask>,
    generation: u32,
    queued: bool,
    rank: Rank,
    /// Whether the last poll did more than a request or two take.
    was_long: bool,
    /// When the task is woken, in monotonic milliseconds; `u64::MAX` for never.
    deadline_ms: u64,
}

impl Task {
    fn queue(&self) -> Queue {
        match self.was_long || self.rank == Rank::Background {
            true => Queue::Later,
            false => Queue::Ready,
        }
    }
}

/// The two queues.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Queue {
    /// Of short tasks with news.
    Ready,
    /// Of long tasks with news, and of those that have spent their budget.
    Later,
}

/// The task table.
pub(crate) struct Executor {
    tasks: Slab<Task>,
    ready: VecDeque<TaskId>,
    /// Tasks that are polled once others had their turn.
    later: VecDeque<TaskId>,
    next_generation: u32,
    /// No deadline is earlier.
    earliest_deadline_ms: u64,
    remote: Arc<RemoteQueue>,
}

/// Wake-ups by wakers of other threads.
#[derive(Debug)]
pub(crate) struct RemoteQueue {
    woken: Mutex<Vec<TaskId>>,
    doorbell: rustix::fd::OwnedFd,
    wake_on_thread: WakeOnThread,
}

/// Wakes a task if the loop with this queue is that of the thread.
pub(crate) type WakeOnThread = fn(&Arc<RemoteQueue>, TaskId) -> bool;

impl RemoteQueue {
    pub(crate) fn new(doorbell: rustix::fd::OwnedFd, wake_on_thread: WakeOnThread) -> Self {
        Self { woken: Mutex::new(Vec::new()), doorbell, wake_on_thread }
    }

    fn take(&self) -> Vec<TaskId> {
        std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct RemoteWaker {
    id: TaskId,
    queue: Arc<RemoteQueue>,
}

impl Wake for RemoteWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if (self.queue.wake_on_thread)(&self.queue, self.id) {
            return;
        }
        let mut woken = self.queue.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.push(self.id);
        if woken.len() == 1 {
            // With a full counter the loop is being woken already.
            let _ = rustix::io::write(&self.queue.doorbell, &1_u64.to_ne_bytes());
        }
    }
}

thread_local! {
    /// Whether a panic of the running code is contained.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    static CURRENT: Cell<Option<TaskId>> = const { Cell::new(None) };
}

/// The task that is being polled.
///
/// # Panics
/// Outside of a task.
pub fn current_task() -> TaskId {
    CURRENT.get().expect("called inside of a task of the reactor")
}

impl Executor {
    pub(crate) fn new(remote: Arc<RemoteQueue>) -> Self {
        let (ready, later) = (VecDeque::new(), VecDeque::new());
        let (tasks, next_generation, earliest_deadline_ms) = (Slab::new(), 0, u64::MAX);
        Self { tasks, ready, later, next_generation, earliest_deadline_ms, remote }
    }

    pub(crate) fn spawn(&mut self, future: BoxedFuture, rank: Rank, is_contained: bool) {
        let entry = self.tasks.vacant_entry();
        self.next_generation = self.next_generation.wrapping_add(1);
        let id = TaskId { index: entry.key() as u32, generation: self.next_generation };
        let waker = Waker::from(Arc::new(RemoteWaker { id, queue: self.remote.clone() }));
        entry.insert(Task {
            future: Some(PolledTask { future, waker, is_contained }),
            generation: id.generation,
            queued: false,
            rank,
            was_long: false,
            deadline_ms: u64::MAX,
        });
        self.wake(id);
    }

    /// Removes all tasks. The caller drops them while the executor is not borrowed.
    pub(crate) fn take_tasks(&mut self) -> impl Sized + use<> {
        self.ready.clear();
        self.later.clear();
        std::mem::take(&mut self.tasks)
    }

    /// Whether wakers with this queue wake its tasks.
    pub(crate) fn has_queue(&self, remote: &Arc<RemoteQueue>) -> bool {
        Arc::ptr_eq(&self.remote, remote)
    }

    fn task(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(id.index as usize).filter(|task| task.generation == id.generation)
    }

    pub(crate) fn wake(&mut self, id: TaskId) {
        if let Some(task) = self.task(id)
            && !task.queued
        {
            task.queued = true;
            let queue = task.queue();
            self.queue(queue).push_back(id);
        }
    }

    /// Has a task polled again once others had their turn.
    pub(crate) fn wake_later(&mut self, id: TaskId) {
        if let Some(task) = self.task(id)
            && !task.queued
        {
            task.queued = true;
            self.later.push_back(id);
        }
    }

    pub(crate) fn set_deadline(&mut self, id: TaskId, at_ms: u64) {
        if let Some(task) = self.task(id) {
            task.deadline_ms = at_ms;
            self.earliest_deadline_ms = self.earliest_deadline_ms.min(at_ms);
        }
    }

    pub(crate) fn deadline(&mut self, id: TaskId) -> u64 {
        self.task(id).map_or(u64::MAX, |task| task.deadline_ms)
    }

    /// When the next task may have to be woken by its deadline; `u64::MAX` for never.
    pub(crate) fn earliest_deadline_ms(&self) -> u64 {
        self.earliest_deadline_ms
    }

    /// Wakes all tasks whose deadline has passed; true if there are any.
    pub(crate) fn sweep(&mut self, now_ms: u64) -> bool {
        let mut earliest_ms = u64::MAX;
        self.wake_if(|task| {
            earliest_ms = earliest_ms.min(task.deadline_ms);
            task.deadline_ms <= now_ms
        });
        self.earliest_deadline_ms = earliest_ms;
        earliest_ms <= now_ms
    }

    pub(crate) fn wake_all(&mut self) {
        self.wake_if(|_| true);
    }

    fn wake_if(&mut self, mut filter: impl FnMut(&Task) -> bool) {
        for (index, task) in &mut self.tasks {
            if filter(task) && !task.queued {
                task.queued = true;
                let id = TaskId { index: index as u32, generation: task.generation };
                match task.queue() {
                    Queue::Ready => self.ready.push_back(id),
                    Queue::Later => self.later.push_back(id),
                }
            }
        }
    }

    pub(crate) fn collect_remote(&mut self) {
        for id in self.remote.take() {
            self.wake(id);
        }
    }

    pub(crate) fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// Whether any task waits to be polled, in either queue.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.later.is_empty()
    }

    pub(crate) fn later_count(&self) -> usize {
        self.later.len()
    }

    /// Removes the next task to poll from the table.
    pub(crate) fn start_poll(&mut self, queue: Queue) -> Option<(TaskId, PolledTask)> {
        while let Some(id) = self.queue(queue).pop_front() {
            let Some(task) = self.task(id) else { continue };
            debug_assert!(task.queued, "a task is in one of both queues at most once");
            debug_assert!(task.future.is_some(), "a task is not polled within its own poll");
            if let Some(polled) = task.future.take() {
                task.queued = false;
                return Some((id, polled));
            }
        }
        None
    }

    fn queue(&mut self, queue: Queue) -> &mut VecDeque<TaskId> {
        match queue {
            Queue::Ready => &mut self.ready,
            Queue::Later => &mut self.later,
        }
    }

    /// Puts a task back with whether its poll was long; without it, removes the task.
    pub(crate) fn finish_poll(&mut self, id: TaskId, pending: Option<(PolledTask, bool)>) {
        match pending {
            Some((polled, was_long)) => {
                if let Some(task) = self.task(id) {
                    task.future = Some(polled);
                    task.was_long = was_long;
                }
            }
            None => {
                if self.task(id).is_some() {
                    self.tasks.remove(id.index as usize);
                }
            }
        }
    }
}

/// Whether the running code is contained. Tasks that it spawns are, too.
pub(crate) fn is_contained() -> bool {
    CONTAINED.get()
}

/// Runs code whose panics must not end the loop. Panics of tasks that it spawns are contained as
/// well. The panic hook has reported a panic by the time this returns.
///
/// # Errors
/// The code panicked.
pub fn contain<T>(act: impl FnOnce() -> T) -> Result<T, Panicked> {
    let outer = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(act));
    CONTAINED.set(outer);
    result.map_err(|_| Panicked)
}

/// Contained code has panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Runs `poll` with `id` as the current task, which has its budget. Returns in addition whether the
/// poll was long.
pub(crate) fn as_current<T>(id: TaskId, poll: impl FnOnce() -> T) -> (T, bool) {
    let _outer = Outer(CURRENT.replace(Some(id)));
    with_budget(poll)
}

/// Restores the outer task, also after a panic.
struct Outer(Option<TaskId>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

#[cfg(test)]
mod tests;
