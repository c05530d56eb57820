//! The tasks of the loop and the queue of those that want to be polled.
//!
//! Called by [`crate::reactor`]. Invariants: a task is in one of both queues at most once; those that
//! have spent their budget wait apart, so that they never stand before one that has news.

use crate::budget::with_budget;
use slab::Slab;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Names a task; stale ids are recognised and ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId {
    index: u32,
    generation: u32,
}

type BoxedFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What polling a task takes.
pub(crate) struct Lent {
    pub(crate) future: BoxedFuture,
    pub(crate) waker: Waker,
    /// Whether a panic ends this task alone.
    pub(crate) is_contained: bool,
}

struct Task {
    /// Taken out while the task is polled.
    future: Option<Lent>,
    generation: u32,
    queued: bool,
    /// Monotonic ms after which the task is woken; `u64::MAX` for never.
    deadline_ms: u64,
}

/// The two queues.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Queue {
    /// Of tasks with news.
    Ready,
    /// Of tasks that have spent their budget.
    Later,
}

/// The task table.
pub(crate) struct Executor {
    tasks: Slab<Task>,
    ready: VecDeque<TaskId>,
    /// Tasks that go on without news, once others had their turn.
    later: VecDeque<TaskId>,
    next_generation: u32,
    remote: Arc<RemoteQueue>,
}

/// Wake-ups that came from wakers, possibly from other threads.
#[derive(Debug)]
pub(crate) struct RemoteQueue {
    woken: Mutex<Vec<TaskId>>,
    doorbell: rustix::fd::OwnedFd,
}

impl RemoteQueue {
    pub(crate) fn new(doorbell: rustix::fd::OwnedFd) -> Self {
        Self { woken: Mutex::new(Vec::new()), doorbell }
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
        self.queue.woken.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
        // A full counter means that the loop is being woken already.
        let _ = rustix::io::write(&self.queue.doorbell, &1_u64.to_ne_bytes());
    }
}

thread_local! {
    /// Whether what runs now must not end the loop by a panic.
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
        Self { tasks: Slab::new(), ready, later, next_generation: 0, remote }
    }

    pub(crate) fn spawn(&mut self, future: BoxedFuture, is_contained: bool) {
        let entry = self.tasks.vacant_entry();
        self.next_generation = self.next_generation.wrapping_add(1);
        let id = TaskId { index: entry.key() as u32, generation: self.next_generation };
        let waker = Waker::from(Arc::new(RemoteWaker { id, queue: self.remote.clone() }));
        entry.insert(Task {
            future: Some(Lent { future, waker, is_contained }),
            generation: id.generation,
            queued: true,
            deadline_ms: u64::MAX,
        });
        self.ready.push_back(id);
    }

    fn task(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(id.index as usize).filter(|task| task.generation == id.generation)
    }

    pub(crate) fn wake(&mut self, id: TaskId) {
        if let Some(task) = self.task(id)
            && !task.queued
        {
            task.queued = true;
            self.ready.push_back(id);
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
        }
    }

    pub(crate) fn deadline(&mut self, id: TaskId) -> u64 {
        self.task(id).map_or(u64::MAX, |task| task.deadline_ms)
    }

    /// Wakes all tasks whose deadline has come.
    pub(crate) fn sweep(&mut self, now_ms: u64) {
        self.wake_if(|task| task.deadline_ms <= now_ms);
    }

    pub(crate) fn wake_all(&mut self) {
        self.wake_if(|_| true);
    }

    fn wake_if(&mut self, wanted: impl Fn(&Task) -> bool) {
        for (index, task) in &mut self.tasks {
            if !task.queued && wanted(task) {
                task.queued = true;
                let generation = task.generation;
                self.ready.push_back(TaskId { index: index as u32, generation });
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

    /// Whether any task wants to be polled, now or later.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.later.is_empty()
    }

    pub(crate) fn later_count(&self) -> usize {
        self.later.len()
    }

    /// Takes the next task that wants to be polled out of the table.
    pub(crate) fn start_poll(&mut self, queue: Queue) -> Option<(TaskId, Lent)> {
        while let Some(id) = self.queue(queue).pop_front() {
            if let Some(task) = self.task(id)
                && let Some(lent) = task.future.take()
            {
                task.queued = false;
                return Some((id, lent));
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

    pub(crate) fn finish_poll(&mut self, id: TaskId, pending: Option<Lent>) {
        match pending {
            Some(lent) => {
                if let Some(task) = self.task(id) {
                    task.future = Some(lent);
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

/// Whether what runs now is contained; so are the tasks that it spawns.
pub(crate) fn is_contained() -> bool {
    CONTAINED.get()
}

/// Runs what others may make panic, at their own cost: neither a panic in it nor one in a task that
/// it spawns ends the loop. The panic hook has told of it by then.
///
/// # Errors
/// It panicked.
pub fn contain<T>(act: impl FnOnce() -> T) -> Result<T, Panicked> {
    let outer = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(act));
    CONTAINED.set(outer);
    result.map_err(|_| Panicked)
}

/// What was contained has panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Runs `poll` with `id` as the current task, which has its budget.
pub(crate) fn as_current<T>(id: TaskId, poll: impl FnOnce() -> T) -> T {
    let _outer = Outer(CURRENT.replace(Some(id)));
    with_budget(poll)
}

/// Puts the outer task back, however the inner one ends.
struct Outer(Option<TaskId>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}
