//! The PHP workers of one app in one generation, and the queue in front of them.
//!
//! Connections submit exchanges; the loop's idle hook looks into the rings; the keeper
//! ([`keeper`]) forks, enforces deadlines and sizes the pool. Invariants: the queue is bounded; a
//! request is given to one worker only and never twice; a worker's end costs exactly the request
//! that it had.

mod keeper;
mod status;
mod worker;

use crate::exchange::{End, Exchange};
use crate::log::{ErrorLog, Event as LogEvent, Level};
use crate::reason::Reason;
use outboard_reactor::{Event, now_ms};
use outboard_ring::control::HostSettings;
use outboard_ring::doorbell::Doorbell;
use outboard_ring::response::LogLine;
use outboard_ring::spsc::{Corrupt, Sleep};
use outboard_supervisor::zygote::Zygote;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

pub use keeper::StartError;
pub use status::{PoolStatus, WorkerStatus};
pub use worker::State;
use worker::{News, Overdue, Worker};

/// How a pool is run. Times in ms.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The app's name.
    pub app: String,
    /// The host binary.
    pub host_binary: PathBuf,
    /// What the host needs.
    pub host: HostSettings,
    /// Workers that are always there.
    pub min: usize,
    /// Most workers; `None` sizes by memory.
    pub max: Option<usize>,
    /// Memory that all workers together may use.
    pub memory_budget_bytes: u64,
    /// Idle workers that are kept beyond the demand.
    pub spare: usize,
    /// Most waiting requests.
    pub queue_length: usize,
    /// Longest wait in the queue.
    pub queue_timeout_ms: u64,
    /// Workers beyond `max` for requests that come from our own workers.
    pub loopback_slots: usize,
    /// Idle time after which a worker above the minimum leaves.
    pub idle_timeout_ms: u64,
    /// Requests after which a worker is replaced.
    pub recycle_requests: Option<u64>,
    /// Spread of the above, percent.
    pub recycle_jitter_percent: u32,
    /// Own memory above which a worker is replaced.
    pub recycle_memory_bytes: Option<u64>,
    /// Longest run of a request.
    pub deadline_ms: u64,
    /// A request longer than this is written to the slow log.
    pub slow_ms: Option<u64>,
    /// Longest start of PHP.
    pub start_timeout_ms: u64,
}

/// A request that waits for a worker.
#[derive(Debug)]
struct Waiting {
    exchange: Rc<Exchange>,
    /// The client's address when it is on this machine: it could be one of our workers.
    local_peer: Option<SocketAddr>,
    /// Whether that was looked into.
    origin_checked: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: u64,
    pub(crate) queued: u64,
    pub(crate) rejected: u64,
    pub(crate) crashes: u64,
    pub(crate) deadlines: u64,
    pub(crate) recycled: u64,
    pub(crate) forks: u64,
}

#[derive(Debug, Default)]
struct Members {
    /// By slot; a slot is used again after its worker was reaped.
    workers: Vec<Option<Worker>>,
    /// Slots of idle workers; the last is the warmest.
    idle: Vec<usize>,
    queue: VecDeque<Waiting>,
}

/// Whether and why the pool takes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// PHP is starting, for the first time or again.
    Starting,
    /// Requests are served.
    Serving,
    /// A successor has taken over: what is here is finished, nothing comes anew.
    Retiring,
    /// No process is left.
    Gone,
}

/// The pool; shared by the connections, the idle hook and the keeper.
#[derive(Debug)]
pub struct Pool {
    settings: PoolSettings,
    members: RefCell<Members>,
    zygote: RefCell<Option<Zygote>>,
    phase: Cell<Phase>,
    counters: RefCell<Counters>,
    keeping: RefCell<keeper::Keeping>,
    /// Set when a request had to wait or a worker's state changed: the keeper looks sooner.
    demand: Event,
    /// Set when the phase changed.
    phase_changed: Event,
    gateway_doorbell: Doorbell,
    scratch: RefCell<Vec<u8>>,
    error_log: Rc<ErrorLog>,
    slow_log: Rc<ErrorLog>,
}

impl Pool {
    /// Hands a request over: to an idle worker at once, or to the queue.
    ///
    /// # Errors
    /// The reason for which the request cannot even wait.
    pub fn submit(
        &self,
        exchange: Rc<Exchange>,
        local_peer: Option<SocketAddr>,
    ) -> Result<(), Reason> {
        self.counters.borrow_mut().requests += 1;
        if matches!(self.phase.get(), Phase::Gone) {
            return Err(Reason::AppDown);
        }
        let mut members = self.members.borrow_mut();
        while let Some(slot) = members.idle.pop() {
            let Some(worker) = members.workers[slot].as_mut() else { continue };
            match worker.begin(exchange.clone(), now_ms()) {
                Ok(()) => return Ok(()),
                Err(corrupt) => self.condemn(worker, corrupt),
            }
        }
        if members.queue.len() >= self.settings.queue_length {
            self.counters.borrow_mut().rejected += 1;
            let down = self.phase.get() == Phase::Starting && self.keeping.borrow().failing();
            return Err(if down { Reason::AppDown } else { Reason::QueueFull });
        }
        self.counters.borrow_mut().queued += 1;
        members.queue.push_back(Waiting { exchange, local_peer, origin_checked: false });
        if std::mem::take(&mut self.keeping.borrow_mut().slow) {
            self.demand.set();
        }
        Ok(())
    }

    /// The client of an exchange has gone: forget it in the queue, or tell its worker.
    pub fn abandon(&self, exchange: &Rc<Exchange>) {
        exchange.abandon();
        let mut members = self.members.borrow_mut();
        members.queue.retain(|waiting| !Rc::ptr_eq(&waiting.exchange, exchange));
        for worker in members.workers.iter_mut().flatten() {
            if worker.exchange.as_ref().is_some_and(|theirs| Rc::ptr_eq(theirs, exchange)) {
                worker.abort();
            }
        }
    }

    /// Looks into the rings of all workers that could have news. Returns whether any had.
    pub fn look(&self) -> bool {
        let mut members = self.members.borrow_mut();
        let mut had_news = false;
        for slot in 0..members.workers.len() {
            had_news |= self.look_at(&mut members, slot);
        }
        had_news
    }

    fn look_at(&self, members: &mut Members, slot: usize) -> bool {
        let mut had_news = false;
        loop {
            let Some(worker) = members.workers[slot].as_mut() else { return had_news };
            if !matches!(worker.state, State::Booting | State::Busy) {
                return had_news;
            }
            let before = worker.exchange.clone();
            let looked = worker
                .pump()
                .and_then(|()| worker.look(&mut self.scratch.borrow_mut(), |w, l| self.log(w, l)));
            match looked {
                Ok(Some(news)) => {
                    had_news = true;
                    self.finished(worker, before.as_deref());
                    self.act(members, slot, news);
                }
                Ok(None) => match self.settle(worker) {
                    Sleep::MayBlock => return had_news,
                    Sleep::Ready => had_news = true,
                },
                Err(corrupt) => {
                    self.condemn(worker, corrupt);
                    return true;
                }
            }
        }
    }

    /// Announces that the loop may sleep; `Ready` when the worker has sent something meanwhile.
    fn settle(&self, worker: &mut Worker) -> Sleep {
        if worker.is_stalled() {
            return Sleep::MayBlock;
        }
        worker.prepare_sleep().unwrap_or_else(|corrupt| {
            self.condemn(worker, corrupt);
            Sleep::MayBlock
        })
    }

    /// What follows from a worker's news.
    fn act(&self, members: &mut Members, slot: usize, news: News) {
        let Some(worker) = members.workers[slot].as_mut() else { return };
        match news {
            News::Ready => {
                self.keeping.borrow_mut().worker_ready();
                self.phase_changed.set();
                self.give_work(members, slot);
            }
            News::Free => self.give_work(members, slot),
            News::Leaving => worker.state = State::Stopping,
        }
    }

    /// Gives a free worker the next waiting request, or lets it idle, or sees it off.
    fn give_work(&self, members: &mut Members, slot: usize) {
        let Members { workers, queue, idle } = members;
        let Some(worker) = workers[slot].as_mut() else { return };
        if self.should_leave(worker, queue.is_empty()) {
            if worker.stop().is_err() {
                self.kill(worker);
            }
            return;
        }
        while let Some(waiting) = queue.pop_front() {
            if waiting.exchange.is_abandoned() || waiting.exchange.has_ended() {
                continue;
            }
            if let Err(corrupt) = worker.begin(waiting.exchange, now_ms()) {
                self.condemn(worker, corrupt);
            }
            return;
        }
        worker.state = State::Idle;
        worker.since_ms = now_ms();
        idle.push(slot);
    }

    fn should_leave(&self, worker: &Worker, queue_is_empty: bool) -> bool {
        if self.phase.get() == Phase::Retiring && queue_is_empty {
            return true;
        }
        let too_big = self
            .settings
            .recycle_memory_bytes
            .is_some_and(|most_bytes| worker.memory_bytes > most_bytes);
        if worker.served >= worker.recycle_after || too_big {
            self.counters.borrow_mut().recycled += 1;
            return true;
        }
        false
    }

    /// Books a request that a worker has finished.
    fn finished(&self, worker: &Worker, exchange: Option<&Exchange>) {
        let (Some(exchange), Some(slow_ms)) = (exchange, self.settings.slow_ms) else { return };
        let took_ms = now_ms().saturating_sub(exchange.started_ms.get().unwrap_or(0));
        if exchange.done.get().is_some() && took_ms >= slow_ms {
            let backtrace = worker.backtrace().unwrap_or_default();
            self.write_slow(worker, exchange, took_ms, &backtrace);
        }
    }

    fn write_slow(&self, worker: &Worker, exchange: &Exchange, took_ms: u64, backtrace: &str) {
        let text = format!("{} took {took_ms} ms\n{backtrace}", exchange.label);
        for text in text.trim_end().lines() {
            let event = LogEvent {
                app: Some(&self.settings.app),
                worker: worker.pid,
                request: Some(exchange.request_id),
                reason: None,
                text,
            };
            self.slow_log.write(Level::Warn, event);
        }
    }

    fn log(&self, worker: &Worker, line: LogLine<'_>) {
        let text = String::from_utf8_lossy(line.text);
        let event = LogEvent {
            app: Some(&self.settings.app),
            worker: worker.pid,
            request: worker.exchange.as_ref().map(|exchange| exchange.request_id),
            reason: None,
            text: &text,
        };
        self.error_log.write(Level::from_syslog(line.severity), event);
    }

    /// A worker that broke the protocol is not talked to any more.
    fn condemn(&self, worker: &mut Worker, corrupt: Corrupt) {
        self.report(worker, Reason::WorkerBroke, &corrupt.to_string());
        if let Some(exchange) = worker.exchange.take() {
            exchange.finish(End::Failed(Reason::WorkerBroke));
        }
        self.kill(worker);
    }

    fn kill(&self, worker: &mut Worker) {
        worker.state = State::Killed;
        worker.overdue = Overdue::Killed;
        self.signal(worker.number, libc_signal::KILL);
    }

    fn signal(&self, worker: u64, signal: i32) {
        if let Some(zygote) = self.zygote.borrow().as_ref()
            && let Err(error) = zygote.signal(worker, signal)
        {
            self.error_log.note(Level::Error, &format!("cannot signal a worker: {error}"));
        }
    }

    fn report(&self, worker: &Worker, reason: Reason, text: &str) {
        let event = LogEvent {
            app: Some(&self.settings.app),
            worker: worker.pid,
            request: worker.exchange.as_ref().map(|exchange| exchange.request_id),
            reason: Some(reason),
            text,
        };
        self.error_log.write(Level::Error, event);
    }
}

/// The signal numbers that are used, which Linux fixes.
mod libc_signal {
    pub(super) const KILL: i32 = 9;
}
