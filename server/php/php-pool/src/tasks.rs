//! Background tasks. Workers and the clock queue them, task workers process them.
//!
//! One per app with task workers and generation. It receives each [`Call::Task`], holds the [`Queue`], and submits each due task
//! to a pool of its own, as a request that the host recognizes as a task. Invariants: an accepted task
//! is tried until it succeeds or its attempts are used up, whatever happens to its worker and its
//! requester; no more tasks run than the pool has room for, so that all others wait in the queue; a
//! successor takes over the queue.
//!
//! [`Call::Task`]: outboard_ring::operation::Call::Task

mod acceptance;
mod attempt;
mod cron;
mod hand_over;
mod incoming;
pub mod journal;
mod operations;
mod queue;
mod replies;
mod successor;
#[cfg(test)]
mod tests;
mod tracing;

use crate::pool::Pool;
use crate::pool::operations::{NoOperations, Requester};
use attempt::{Attempts, Outcome};
use incoming::IncomingTasks;
use journal::TaskJournal;
use outboard_admin_api::status as api;
use outboard_buffer::Account;
use outboard_config::{self as config, TimeZone};
use outboard_log::{ErrorLog, Event as LogEvent, Level, Wall};
use outboard_reactor::{Event, now_ms, sleep, spawn, with_deadline};
use outboard_ring::frame::Tag;
use outboard_ring::operation::Failure;
use queue::{Attempt, Limits, Queue, Settlement, Task};
use replies::{fail, send_result};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::{Rc, Weak};
use tracing::Traced;

pub use operations::refuse;
pub use successor::TaskSuccessor;
pub use tracing::TaskTracer;

/// How often it is seen whether another process has left its tasks to this one.
const HELD_PAUSE_MS: u64 = 10;
/// The data of a scheduled task: serialize(null).
const NULL: &[u8] = b"N;";

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
    /// Those with Xdebug, for tasks of requests that are debugged.
    debug_pool: Option<Rc<Pool>>,
    /// How many tasks they have, or wait for them.
    debugged: Cell<usize>,
    /// Counts the memory of running tasks, in addition to that of the queue.
    memory: Rc<Account>,
    queue: RefCell<Queue>,
    /// Stores accepted tasks, if configured.
    journal: Option<Rc<TaskJournal>>,
    /// Requesters that wait for a task's result, by the task's id.
    awaited: RefCell<HashMap<u64, (Requester, Tag)>>,
    /// Tasks whose data has not arrived completely.
    incoming: IncomingTasks,
    /// Set when a task may be due.
    changed: Event,
    counters: RefCell<Counters>,
    next_id: Cell<u64>,
    /// Takes over new tasks after a reload.
    successor: RefCell<Option<Rc<Self>>>,
    /// Takes over new tasks after an upgrade of the server.
    next_process: RefCell<Option<Rc<dyn TaskSuccessor>>>,
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
        (pool, debug_pool, memory): (Rc<Pool>, Option<Rc<Pool>>, Rc<Account>),
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
            debug_pool,
            debugged: Cell::default(),
            memory,
            queue: RefCell::new(Queue::new(limits)),
            journal: journal.map(Rc::new),
            awaited: RefCell::default(),
            incoming: IncomingTasks::default(),
            changed: Event::default(),
            counters: RefCell::default(),
            next_id: Cell::new(Wall::now().unix_us),
            successor: RefCell::default(),
            next_process: RefCell::default(),
            is_held: Cell::default(),
            left_at_ms: Cell::default(),
            unfinished: RefCell::default(),
            stopped: Cell::new(false),
            tracer: RefCell::default(),
            log,
        });
        spawn(run(tasks.clone()));
        for (name, schedule) in tasks.config.cron.clone() {
            spawn(queue_when_due(tasks.weak_self.clone(), name, schedule));
        }
        tasks
    }

    /// Traces the attempts from now on.
    pub fn trace_by(&self, tracer: Rc<dyn TaskTracer>) {
        self.tracer.replace(Some(tracer));
    }

    /// The pools of its workers.
    pub fn pools(&self) -> impl Iterator<Item = &Rc<Pool>> {
        std::iter::once(&self.pool).chain(&self.debug_pool)
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
        debug_assert!(
            (1..=self.pool.settings().queue_length).contains(&max),
            "the pool would refuse some of {max} tasks"
        );
        while !self.is_held.get() {
            let mut queue = self.queue.borrow_mut();
            // Those that are stopped at a breakpoint keep no others waiting.
            if queue.running() - self.debugged.get() >= max {
                return;
            }
            let Some(task) = queue.begin(now_ms()) else { return };
            drop(queue);
            let tasks = self.clone();
            let debug_pool = self.debug_pool.clone().filter(|_| task.is_debugged);
            let debugged = usize::from(debug_pool.is_some());
            self.debugged.update(|count| count + debugged);
            spawn(async move {
                let tracer = tasks.tracer.borrow().clone();
                let traced = tracer.map(|tracer| Traced::begin(tracer, &task));
                let pool = debug_pool.as_ref().unwrap_or(&tasks.pool);
                let (memory, script) = (&tasks.memory, &tasks.config.script);
                let attempts = Attempts { pool, memory, script };
                let outcome = attempts.attempt(&task, traced.as_ref()).await;
                if let Some(traced) = traced {
                    traced.end(&tasks.app, &task, outcome.attempt);
                }
                tasks.debugged.update(|count| count - debugged);
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

    /// Sends the result of a finished task to its requester, if that waits, and logs a failure.
    fn report_result(
        &self,
        task: &Task,
        settlement: Settlement,
        requester: Option<(Requester, Tag)>,
        text: &[u8],
    ) {
        let message = String::from_utf8_lossy(text);
        if settlement == Settlement::GivenUp {
            let name = String::from_utf8_lossy(&task.name);
            let (id, attempts) = (task.id, task.attempts);
            let line = format!("task {name} {id:016x} given up at attempt {attempts}: {message}");
            self.log(Level::Error, &line);
        }
        match requester {
            Some((requester, operation)) if settlement == Settlement::Done => {
                send_result(&requester, operation, text)
            }
            Some((requester, operation)) => fail(&requester, operation, Failure::Task, &message),
            None => {}
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
            return tasks.pools().for_each(|pool| pool.set_operations(Rc::new(NoOperations)));
        }
        let now_ms = now_ms();
        let due_ms = tasks.queue.borrow().due_ms().filter(|due_ms| *due_ms > now_ms);
        let until_ms = due_ms.unwrap_or(now_ms + MAX_SLEEP_MS);
        // Both ends of the wait are handled alike.
        let _ = with_deadline(until_ms, tasks.changed.wait()).await;
    }
}

/// Queues a task of the clock whenever it is due, until its generation ends.
async fn queue_when_due(tasks: Weak<Tasks>, name: String, schedule: config::Schedule) {
    let mut last_ms = cron::unix_ms();
    let zone = tasks.upgrade().map_or(TimeZone::UTC, |tasks| tasks.config.timezone.clone());
    while let Some(due_ms) = cron::until_due(&schedule, &zone, last_ms).await {
        // Another process may still queue it.
        while tasks.upgrade().is_some_and(|tasks| tasks.is_held.get() && !tasks.is_finished()) {
            sleep(HELD_PAUSE_MS).await;
        }
        let Some(tasks) = tasks.upgrade().filter(|tasks| !tasks.is_finished()) else { return };
        let (left_at_ms, is_left) = (tasks.left_at_ms.get(), tasks.next_process.borrow().is_some());
        let is_own = if is_left { due_ms <= left_at_ms } else { due_ms > left_at_ms };
        if is_own && !tasks.enqueue(tasks.new_task(name.as_bytes(), NULL.to_vec(), None), 0) {
            tasks.log(Level::Warn, &format!("task {name} is due, but the queue is full"));
        }
        if is_left {
            return tasks.pass_on();
        }
        last_ms = cron::after(due_ms);
    }
}
