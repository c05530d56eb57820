//! Tasks: work that no request waits for. Workers queue it, the clock does, task workers do it.
//!
//! One per app with task workers and generation. It hears [`Call::Task`] before the other
//! [`Operations`], keeps the [`Queue`], and gives each task that is due to a pool of its own, as a
//! request that the host's PHP part knows for a task. Invariants: a task that was accepted is
//! tried until it succeeds or its attempts are used up, whatever becomes of its worker and of who
//! asked for it; at most as many run as the pool has room for, so that all others wait here; a
//! successor takes over what waits.

mod attempt;
mod clock;
mod incoming;
pub mod journal;
mod queue;
mod status;

use crate::pool::Pool;
use crate::pool::operations::{NoOperations, Operations, PIECE_BYTES, Requester};
use crate::worker_id::WorkerId;
use attempt::Outcome;
use incoming::IncomingTask;
use journal::TaskJournal;
use outboard_buffer::Account;
use outboard_config as config;
use outboard_log::{ErrorLog, Event as LogEvent, Level, Wall};
use outboard_reactor::{Event, now_ms, share_turn, spawn, with_deadline};
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, Completion, Failure, FetchedHead, Operation, Part};
use queue::{Attempt, Limits, Queue, Settled, Task};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Largest data of a task, and largest result.
const DATA_MAX_BYTES: usize = 16 << 20;

/// The most that is slept, with and without a task that will be due.
const LONGEST_SLEEP_MS: u64 = 60_000;

const STOPPING: &str = "the server stops";

/// See the module.
#[derive(Debug)]
pub struct Tasks {
    me: Weak<Self>,
    app: String,
    config: config::Tasks,
    /// The workers of tasks.
    pub pool: Rc<Pool>,
    /// Counts what tasks that run take beside their places in the queue.
    memory: Rc<Account>,
    queue: RefCell<Queue>,
    /// Where tasks are written down, when they are.
    journal: Option<Rc<TaskJournal>>,
    /// Who waits for a task's result, by the task's id.
    awaited: RefCell<HashMap<u64, (Requester, Tag)>>,
    /// Tasks whose data are still coming.
    coming: RefCell<HashMap<(WorkerId, Tag), IncomingTask>>,
    /// Set when there may be something to begin.
    changed: Event,
    counters: RefCell<Counters>,
    next_id: Cell<u64>,
    /// Takes what comes after a reload.
    successor: RefCell<Option<Rc<Self>>>,
    /// The server stops, or the app has no task workers any more.
    stopped: Cell<bool>,
    /// Carries out all that is no task.
    others: RefCell<Option<Rc<dyn Operations>>>,
    log: Rc<ErrorLog>,
}

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
    /// Begins to work off what is queued, and to queue what the clock says. What an earlier gateway
    /// has left in `journal` is [`Tasks::resume`]d.
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
        let tasks = Rc::new_cyclic(|me| Self {
            me: me.clone(),
            app: app.to_owned(),
            config,
            pool,
            memory,
            queue: RefCell::new(Queue::new(limits)),
            journal: journal.map(Rc::new),
            awaited: RefCell::default(),
            coming: RefCell::default(),
            changed: Event::default(),
            counters: RefCell::default(),
            next_id: Cell::new(Wall::now().unix_us),
            successor: RefCell::default(),
            stopped: Cell::new(false),
            others: RefCell::default(),
            log,
        });
        spawn(work_off(tasks.clone()));
        for (name, schedule) in tasks.config.cron.clone() {
            spawn(clock::queue_when_due(tasks.me.clone(), name, schedule));
        }
        tasks
    }

    /// Takes up what the last gateway did not finish, unless `before` has it.
    pub fn resume(self: &Rc<Self>, before: Option<&Rc<Self>>) {
        let Some(journal) = self.journal.clone() else { return };
        let had = before.and_then(|before| before.journal.clone());
        if had.is_some_and(|had| had.is_same(&journal)) {
            return;
        }
        let tasks = self.clone();
        spawn(async move {
            match journal.found().await {
                Ok((found, strange)) => tasks.take_up(found, strange).await,
                Err(error) => {
                    tasks.say(Level::Error, &format!("the tasks that were kept: {error}"));
                }
            }
        });
    }

    /// There may be very many; a reload may come meanwhile.
    async fn take_up(&self, found: Vec<journal::Found>, strange: usize) {
        let (count, wall_ms) = (found.len(), Wall::now().unix_us / 1000);
        let last_id = found.iter().map(|(task, _)| task.id).max().unwrap_or(0);
        self.next_id.set(self.next_id.get().max(last_id + 1));
        for (task, due_ms) in found {
            share_turn(task.data.len()).await;
            let present = self.present();
            present.next_id.set(present.next_id.get().max(self.next_id.get()));
            present.queue.borrow_mut().put(task, now_ms() + due_ms.saturating_sub(wall_ms));
        }
        if count > 0 {
            self.say(Level::Info, &format!("{count} tasks were left by the last gateway"));
        }
        if strange > 0 {
            self.say(Level::Error, &format!("{strange} records among the tasks are none"));
        }
        self.present().changed.set();
    }

    /// What waits here goes to `successor`, as does all that comes; what runs is finished here.
    pub fn hand_over(&self, successor: &Rc<Self>) {
        successor.awaited.borrow_mut().extend(self.awaited.take());
        successor.next_id.set(successor.next_id.get().max(self.next_id.get()));
        self.successor.replace(Some(successor.clone()));
        self.pass_on();
        self.changed.set();
    }

    fn pass_on(&self) {
        if let Some(successor) = &*self.successor.borrow() {
            successor.queue.borrow_mut().inherit(&mut self.queue.borrow_mut());
            successor.changed.set();
            successor.pass_on();
            if successor.stopped.get() {
                successor.stop();
            }
        }
    }

    /// Begins nothing any more, and says what is left undone; what runs is finished.
    pub fn stop(&self) {
        self.stopped.set(true);
        let left = self.queue.borrow_mut().clear();
        for task in left.values() {
            if let Some((requester, id)) = self.awaited.borrow_mut().remove(&task.id) {
                fail(&requester, id, Failure::Busy, STOPPING);
            }
        }
        if !left.is_empty() {
            let (level, fate) = match self.journal {
                Some(_) => (Level::Info, "wait for the next start"),
                None => (Level::Warn, "are lost"),
            };
            self.say(level, &format!("{} tasks were not begun, and {fate}", left.len()));
        }
        self.changed.set();
    }

    /// Whether it has nothing to begin any more.
    fn is_over(&self) -> bool {
        self.stopped.get() || self.successor.borrow().is_some() || self.pool.is_gone()
    }

    /// The app's name.
    pub fn app(&self) -> &str {
        &self.app
    }

    fn say(&self, level: Level, text: &str) {
        self.log.write(level, LogEvent { app: Some(&self.app), text, ..LogEvent::default() });
    }

    /// The one that tasks are for now.
    fn present(&self) -> Rc<Self> {
        match &*self.successor.borrow() {
            Some(successor) => successor.present(),
            None => self.me.upgrade().expect("whoever calls holds it"),
        }
    }

    /// As many as the workers have room for.
    fn begin_due(self: &Rc<Self>) {
        let most = (self.config.workers * self.config.concurrency) as usize;
        loop {
            let mut queue = self.queue.borrow_mut();
            if queue.running() >= most {
                return;
            }
            let Some(task) = queue.begin(now_ms()) else { return };
            drop(queue);
            let tasks = self.clone();
            spawn(async move {
                let outcome = tasks.attempt(&task).await;
                tasks.settle(&task, outcome);
            });
        }
    }

    fn settle(&self, task: &Task, outcome: Outcome) {
        let Outcome { attempt, text } = outcome;
        let settled = self.queue.borrow_mut().settle(task.id, attempt, now_ms());
        let mut counters = self.counters.borrow_mut();
        counters.lost += u64::from(attempt == Attempt::Lost);
        match settled {
            Settled::Done => counters.done += 1,
            Settled::Again(_) => counters.retried += 1,
            Settled::GivenUp => counters.given_up += 1,
        }
        drop(counters);
        if let Settled::Again(_) = settled {
            self.pass_on();
            if self.stopped.get() {
                self.stop();
            }
        } else {
            let awaited = self.present().awaited.borrow_mut().remove(&task.id);
            self.forget_kept(task.id);
            self.answer(task, settled, awaited, &text);
        }
        self.changed.set();
    }

    /// A task is over.
    fn forget_kept(&self, id: u64) {
        let Some(journal) = self.journal.clone() else { return };
        let log = self.log.clone();
        spawn(async move {
            if let Err(error) = journal.remove(id).await {
                log.note(Level::Error, &format!("task {id:016x} is over and stays kept: {error}"));
            }
        });
    }

    /// Whether what is over is still being told to the store.
    pub fn is_writing(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.leaving() > 0)
    }

    fn answer(
        &self,
        task: &Task,
        settled: Settled,
        awaited: Option<(Requester, Tag)>,
        text: &[u8],
    ) {
        let message = String::from_utf8_lossy(text);
        if settled == Settled::GivenUp {
            let name = String::from_utf8_lossy(&task.name);
            let (id, attempts) = (task.id, task.attempts);
            let line = format!("task {name} {id:016x} given up at attempt {attempts}: {message}");
            self.say(Level::Error, &line);
        }
        match awaited {
            Some((requester, operation)) if settled == Settled::Done => {
                tell(&requester, operation, text)
            }
            Some((requester, operation)) => fail(&requester, operation, Failure::Task, &message),
            None => {}
        }
    }
}

impl Operations for Tasks {
    fn begin(&self, requester: Requester, payload: &[u8]) {
        let taken = match Operation::decode(payload) {
            Ok(Operation { id, call: Call::Task(call) }) => {
                self.take(requester.clone(), id, &call);
                true
            }
            Ok(Operation { id, call: Call::FetchBody(bytes) }) => {
                self.take_data(requester.worker(), id, bytes)
            }
            _ => false,
        };
        if !taken && let Some(others) = &*self.others.borrow() {
            others.begin(requester, payload);
        }
    }

    fn forget(&self, worker: WorkerId) {
        self.coming.borrow_mut().retain(|(requester, _), _| *requester != worker);
        if let Some(others) = &*self.others.borrow() {
            others.forget(worker);
        }
    }
}

/// The operations of an app: its tasks, and what `others` carry out.
pub fn before(others: Rc<dyn Operations>, tasks: Option<Rc<Tasks>>) -> Rc<dyn Operations> {
    match tasks {
        None => Rc::new(NoTasks(others)),
        Some(tasks) => {
            tasks.others.replace(Some(others));
            tasks
        }
    }
}

/// Refuses the tasks of an app that has no task workers.
#[derive(Debug)]
struct NoTasks(Rc<dyn Operations>);

impl Operations for NoTasks {
    fn begin(&self, requester: Requester, payload: &[u8]) {
        if let Ok(Operation { id, call: Call::Task(_) }) = Operation::decode(payload) {
            let why = "the app has no task workers: set workers in its [tasks]";
            return fail(&requester, id, Failure::Busy, why);
        }
        self.0.begin(requester, payload);
    }

    fn forget(&self, worker: WorkerId) {
        self.0.forget(worker);
    }
}

fn fail(requester: &Requester, id: Tag, failure: Failure, message: &str) {
    // A worker that has gone waits for nothing.
    let _ = requester.send(&Completion { id, part: Part::Failed { failure, message } });
}

/// Answers as a fetch is answered; what is long, as the worker takes it.
fn tell(requester: &Requester, id: Tag, text: &[u8]) {
    let head = FetchedHead { status: 200, http_version: 1, url: b"", headers: b"" };
    if text.len() <= PIECE_BYTES {
        // As above.
        let _ = requester.send(&Completion { id, part: Part::Whole(head, text) });
        return;
    }
    let Some(held) = requester.memory().try_hold(text.len()) else {
        let why = "the result is more than may be held in memory for the worker; see limits.memory";
        return fail(requester, id, Failure::TooLarge, why);
    };
    let (requester, text) = (requester.clone(), text.to_vec());
    spawn(async move {
        // As above.
        let _ = requester.send_whole(id, head, std::iter::once(&text[..])).await;
        drop(held);
    });
}

/// Begins what is due, until nothing more is to be begun and nothing runs.
async fn work_off(tasks: Rc<Tasks>) {
    loop {
        if !tasks.is_over() {
            tasks.begin_due();
        } else if tasks.queue.borrow().running() == 0 {
            // Each of the two would keep the other alive.
            return tasks.pool.set_operations(Rc::new(NoOperations));
        }
        let now_ms = now_ms();
        let due_ms = tasks.queue.borrow().due_ms().filter(|due_ms| *due_ms > now_ms);
        let until_ms = due_ms.unwrap_or(now_ms + LONGEST_SLEEP_MS);
        // Whichever it was, what follows is the same.
        let _ = with_deadline(until_ms, tasks.changed.wait()).await;
    }
}
