//! Background tasks. Workers and the clock queue them, task workers process them.
//!
//! One per app with task workers and generation. It receives the app's [`Call::Task`], holds the [`Queue`], and submits each due task
//! to a pool of its own, as a request that the host recognizes as a task. Invariants: an accepted task
//! is tried until it succeeds or its attempts are used up, whatever happens to its worker and its
//! requester; no more tasks run than the pool has room for, so that all others wait in the queue; a
//! successor takes over the queue.
//!
//! [`Call::Task`]: outboard_ring::operation::Call::Task

mod attempt;
mod cron;
mod hand_over;
mod heir;
mod incoming;
pub mod journal;
mod operations;
mod queue;
#[cfg(test)]
mod tests;
mod tracing;

use crate::pool::Pool;
use crate::pool::operations::{NoOperations, Requester};
use crate::worker_id::WorkerId;
use attempt::Outcome;
use incoming::IncomingTask;
use journal::TaskJournal;
use outboard_admin_api::status as api;
use outboard_buffer::Account;
use outboard_config as config;
use outboard_log::{ErrorLog, Event as LogEvent, Level, Wall};
use outboard_reactor::{Event, now_ms, spawn, with_deadline};
use outboard_ring::frame::Tag;
use queue::{Attempt, Limits, Queue, Settlement, Task};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::{Rc, Weak};

pub use heir::Heir;
pub use operations::refuse;
pub use tracing::TaskTracer;

/// The largest data of a task, and the largest result.
const MAX_DATA_BYTES: usize = 16 << 20;

/// The longest sleep until the clock is read again.
const MAX_SLEEP_MS: u64 = 60_000;

const STOPPING: &str = "the server is stopping";

/// See the module.
#[derive(Debug)]
pub struct Tasks {
    weak_self: Weak<Self>,
    app: String,
    config: config::Tasks,
    /// The task workers.
    pub pool: Rc<Pool>,
    /// Counts the memory of running tasks, in addition to that of the queue.
    memory: Rc<Account>,
    queue: RefCell<Queue>,
    /// Stores accepted tasks, if configured.
    journal: Option<Rc<TaskJournal>>,
    /// Requesters that wait for a task's result, by the task's id.
    awaited: RefCell<HashMap<u64, (Requester, Tag)>>,
    /// Tasks whose data has not arrived completely.
    incoming: RefCell<HashMap<(WorkerId, Tag), IncomingTask>>,
    /// Set when a task may be due.
    changed: Event,
    counters: RefCell<Counters>,
    next_id: Cell<u64>,
    /// Takes over new tasks after a reload.
    successor: RefCell<Option<Rc<Self>>>,
    /// Takes over new tasks after an upgrade of the server.
    heir: RefCell<Option<Rc<dyn Heir>>>,
    /// Whether no task is started for now, since another process does.
    is_held: Cell<bool>,
    /// When the other process stopped to queue those of `cron`, in Unix ms.
    left_at_ms: Cell<u64>,
    /// The journaled tasks of all generations of this process that are not finished.
    unfinished: RefCell<Unfinished>,
    /// The server stops, or the app has no task workers any more.
    stopped: Cell<bool>,
    tracer: RefCell<Option<Rc<dyn TaskTracer>>>,
    log: Rc<ErrorLog>,
}

/// The ids of journaled tasks.
type Unfinished = Rc<RefCell<HashSet<u64>>>;

#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    accepted: u64,
    refused: u64,
    done: u64,
    retried: u64,
    lost: u64,
    given_up: u64,
}

impl Tasks {
    /// Starts to process queued tasks, and to queue those of `cron`. Tasks of an earlier gateway in
    /// `journal` are recovered by [`Tasks::resume`].
    pub fn start(
        app: &str,
        config: config::Tasks,
        (pool, memory): (Rc<Pool>, Rc<Account>),
        journal: Option<TaskJournal>,
        log: Rc<ErrorLog>,
    ) -> Rc<Self> {
        let limits = Limits {
            length: config.queue_length as usize,
            bytes: config.max_queue_bytes,
            backoff_ms: config.backoff_ms,
        };
        let tasks = Rc::new_cyclic(|weak_self| Self {
            weak_self: weak_self.clone(),
            app: app.to_owned(),
            config,
            pool,
            memory,
            queue: RefCell::new(Queue::new(limits)),
            journal: journal.map(Rc::new),
            awaited: RefCell::default(),
            incoming: RefCell::default(),
            changed: Event::default(),
            counters: RefCell::default(),
            next_id: Cell::new(Wall::now().unix_us),
            successor: RefCell::default(),
            heir: RefCell::default(),
            is_held: Cell::default(),
            left_at_ms: Cell::default(),
            unfinished: RefCell::default(),
            stopped: Cell::new(false),
            tracer: RefCell::default(),
            log,
        });
        spawn(run(tasks.clone()));
        for (name, schedule) in tasks.config.cron.clone() {
            spawn(cron::queue_when_due(tasks.weak_self.clone(), name, schedule));
        }
        tasks
    }

    /// The app's name.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// The present status.
    pub fn status(&self) -> api::Tasks {
        let (queue, counters) = (self.queue.borrow(), *self.counters.borrow());
        api::Tasks {
            app: self.app.clone(),
            waiting: queue.waiting(),
            running: queue.running(),
            bytes: queue.bytes(),
            accepted: counters.accepted,
            refused: counters.refused,
            done: counters.done,
            retried: counters.retried,
            lost: counters.lost,
            given_up: counters.given_up,
        }
    }

    /// Whether records of finished tasks are being removed from the journal.
    pub fn is_writing(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.pending_removals.get() > 0)
    }

    /// Whether it starts no tasks any more.
    fn is_finished(&self) -> bool {
        self.stopped.get() || self.successor.borrow().is_some() || self.pool.is_gone()
    }

    fn log(&self, level: Level, text: &str) {
        self.log.write(level, LogEvent { app: Some(&self.app), text, ..LogEvent::default() });
    }

    /// Starts due tasks, as far as the workers have room.
    fn begin_due(self: &Rc<Self>) {
        let max = (self.config.workers * self.config.concurrency) as usize;
        while !self.is_held.get() {
            let mut queue = self.queue.borrow_mut();
            if queue.running() >= max {
                return;
            }
            let Some(task) = queue.begin(now_ms()) else { return };
            drop(queue);
            let tasks = self.clone();
            spawn(async move {
                let traced = tasks.begin_trace(&task);
                let outcome = tasks.attempt(&task, traced.as_ref()).await;
                if let Some(traced) = traced {
                    traced.end(&tasks.app, &task, &outcome);
                }
                tasks.settle(&task, outcome);
            });
        }
    }

    fn settle(&self, task: &Task, outcome: Outcome) {
        let Outcome { attempt, text } = outcome;
        let settlement = self.queue.borrow_mut().settle(task.id, attempt, now_ms());
        self.count(attempt, settlement);
        if let Settlement::Retry(_) = settlement {
            self.pass_on();
            if self.stopped.get() {
                self.stop();
            }
        } else {
            let requester = self.current().awaited.borrow_mut().remove(&task.id);
            self.remove_from_journal(task.id);
            self.report_result(task, settlement, requester, &text);
        }
        self.changed.set();
    }

    fn count(&self, attempt: Attempt, settlement: Settlement) {
        let mut counters = self.counters.borrow_mut();
        counters.lost += u64::from(attempt == Attempt::Lost);
        match settlement {
            Settlement::Done => counters.done += 1,
            Settlement::Retry(_) => counters.retried += 1,
            Settlement::GivenUp => counters.given_up += 1,
        }
    }

    fn remove_from_journal(&self, id: u64) {
        let Some(journal) = self.journal.clone() else { return };
        let (log, unfinished) = (self.log.clone(), self.unfinished.borrow().clone());
        spawn(async move {
            let removed = journal.remove(id).await;
            unfinished.borrow_mut().remove(&id);
            if let Err(error) = removed {
                let text = format!(
                    "task {id:016x} is finished, but its record cannot be removed: {error}"
                );
                log.note(Level::Error, &text);
            }
        });
    }
}

/// Starts due tasks, until no task is to be started and none runs.
async fn run(tasks: Rc<Tasks>) {
    loop {
        if !tasks.is_finished() {
            tasks.begin_due();
        } else if tasks.queue.borrow().running() == 0 {
            // Otherwise tasks and pool would keep each other alive.
            return tasks.pool.set_operations(Rc::new(NoOperations));
        }
        let now_ms = now_ms();
        let due_ms = tasks.queue.borrow().due_ms().filter(|due_ms| *due_ms > now_ms);
        let until_ms = due_ms.unwrap_or(now_ms + MAX_SLEEP_MS);
        // Both ends of the wait are handled alike.
        let _ = with_deadline(until_ms, tasks.changed.wait()).await;
    }
}
