//! The PHP workers of one app in one generation, and the queue in front of them.
//!
//! Connections submit exchanges; the loop's idle hook looks into the rings; the keeper
//! ([`keeper`]) forks, enforces deadlines and sizes the pool. Invariants: the queue is bounded; a
//! request is given to one worker only and never twice; a worker's end costs exactly the request
//! that it had.

mod keeper;
pub(crate) mod operations;
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
use outboard_supervisor::plan::recycle;
use outboard_supervisor::worker::life::{LEAVING_GRACE_MS, Moved, State};
use outboard_supervisor::zygote::Zygote;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

pub(crate) use keeper::StartError;
use operations::{Asker, Operations, WorkerId};
pub(crate) use status::PoolStatus;
use worker::{Heard, News, Worker};

/// How a pool is run. Times in ms.
#[derive(Debug, Clone)]
pub(crate) struct PoolSettings {
    /// The app's name.
    pub app: String,
    /// The host binary.
    pub host_binary: PathBuf,
    /// What the host needs.
    pub host: HostSettings,
    /// Workers that are always there; `None` for one a core.
    pub min: Option<usize>,
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

impl Members {
    /// The worker with this name, unless it has gone or is about to.
    fn find(&mut self, id: WorkerId) -> Option<&mut Worker> {
        let worker = self.workers.get_mut(id.slot)?.as_mut()?;
        let is_it = worker.process.number == id.number;
        (is_it && worker.state() != State::Killing).then_some(worker)
    }

    /// The next request that somebody still waits for.
    fn next_waiting(&mut self) -> Option<Rc<Exchange>> {
        loop {
            let exchange = self.queue.pop_front()?.exchange;
            if !exchange.is_abandoned() && !exchange.has_ended() {
                return Some(exchange);
            }
        }
    }

    /// Puts requests that had been given out back to the head of the queue, in their order.
    fn wait_again(&mut self, exchanges: impl IntoIterator<Item = Rc<Exchange>>) {
        let exchanges: Vec<_> = exchanges.into_iter().collect();
        for exchange in exchanges.into_iter().rev() {
            self.queue.push_front(Waiting { exchange, local_peer: None, origin_checked: true });
        }
    }
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
pub(crate) struct Pool {
    /// No other pool of this process has it.
    id: u64,
    me: Weak<Self>,
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
    operations: RefCell<Rc<dyn Operations>>,
    /// Operations that were asked for during the present look.
    asked: RefCell<Vec<(Asker, Vec<u8>)>>,
    /// Workers that have gone since the last look.
    left: RefCell<Vec<WorkerId>>,
    error_log: Rc<ErrorLog>,
    slow_log: Rc<ErrorLog>,
}

impl Pool {
    /// Hands a request over: to an idle worker at once, or to the queue.
    ///
    /// # Errors
    /// The reason for which the request cannot even wait.
    pub(crate) fn submit(
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
            match worker.begin(exchange.clone(), now_ms(), self.settings.deadline_ms) {
                Ok(()) => return Ok(()),
                Err(corrupt) => self.condemn(worker, corrupt),
            }
        }
        if members.queue.is_empty() && self.lead(&mut members, &exchange) {
            return Ok(());
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
    pub(crate) fn abandon(&self, exchange: &Rc<Exchange>) {
        exchange.abandon();
        let mut members = self.members.borrow_mut();
        members.queue.retain(|waiting| !Rc::ptr_eq(&waiting.exchange, exchange));
        for worker in members.workers.iter_mut().flatten() {
            let has_it =
                worker.exchange.as_ref().is_some_and(|theirs| Rc::ptr_eq(theirs, exchange));
            if worker.withdraw(exchange) {
                return;
            }
            if has_it {
                worker.abort();
            }
        }
    }

    /// Puts a request ahead in the ring of the quick worker that has fewest there.
    fn lead(&self, members: &mut Members, exchange: &Rc<Exchange>) -> bool {
        let quick = members.workers.iter_mut().flatten().filter(|worker| worker.can_lead());
        let Some(worker) = quick.min_by_key(|worker| worker.ahead()) else { return false };
        worker.lead(exchange).unwrap_or_else(|corrupt| {
            self.condemn(worker, corrupt);
            false
        })
    }

    /// Looks into the rings of all workers that could have news. Returns whether any had.
    pub(crate) fn look(&self) -> bool {
        let mut members = self.members.borrow_mut();
        let mut had_news = false;
        for slot in 0..members.workers.len() {
            had_news |= self.look_at(&mut members, slot);
        }
        members.workers.iter_mut().flatten().for_each(Worker::ring_if_due);
        drop(members);
        self.begin_operations();
        had_news
    }

    /// Announces to all workers that could have news that the gateway sleeps; true when one has
    /// sent something meanwhile.
    pub(crate) fn prepare_sleep(&self) -> bool {
        let mut members = self.members.borrow_mut();
        let mut any = false;
        for worker in members.workers.iter_mut().flatten().filter(|worker| worker.may_speak()) {
            match worker.prepare_sleep() {
                Ok(sleep) => any |= sleep == Sleep::Ready,
                Err(corrupt) => self.condemn(worker, corrupt),
            }
        }
        any
    }

    /// Takes the announcement back.
    pub(crate) fn cancel_sleep(&self) {
        let mut members = self.members.borrow_mut();
        members.workers.iter_mut().flatten().for_each(Worker::cancel_sleep);
    }

    fn look_at(&self, members: &mut Members, slot: usize) -> bool {
        let mut had_news = false;
        loop {
            let Some(worker) = members.workers[slot].as_mut() else { return had_news };
            if !worker.may_speak() {
                return had_news;
            }
            let before = worker.exchange.clone();
            let looked = worker.pump().and_then(|()| {
                let scratch = &mut self.scratch.borrow_mut();
                worker.look(scratch, now_ms(), |worker, heard| match heard {
                    Heard::Line(line) => self.log(worker, line),
                    Heard::Operation(request, payload) => {
                        self.ask(slot, worker.process.number, request, payload);
                    }
                })
            });
            match looked {
                Ok(Some(news)) => {
                    had_news = true;
                    self.finished(worker, before.as_deref());
                    self.act(members, slot, news);
                }
                Ok(None) => return had_news,
                Err(corrupt) => {
                    self.condemn(worker, corrupt);
                    return true;
                }
            }
        }
    }

    /// What follows from a worker's news.
    fn act(&self, members: &mut Members, slot: usize, news: News) {
        match news {
            News::Free => {
                if self.phase.get() != Phase::Retiring {
                    self.keeping.borrow_mut().worked();
                }
                self.phase_changed.set();
                self.give_work(members, slot);
            }
            News::Leaving => self.redistribute(members, slot),
        }
    }

    /// Has a free worker go on with what lies ahead, or gives it the next waiting request, or lets
    /// it idle, or sees it off.
    fn give_work(&self, members: &mut Members, slot: usize) {
        let deadline_ms = self.settings.deadline_ms;
        let went_on =
            members.workers[slot].as_mut().is_some_and(|w| w.go_on(now_ms(), deadline_ms));
        if !went_on {
            if self.should_leave(members, slot) {
                if let Some(worker) = members.workers[slot].as_mut() {
                    self.see_off(worker);
                }
                return;
            }
            let Some(exchange) = members.next_waiting() else {
                members.idle.push(slot);
                return;
            };
            let Some(worker) = members.workers[slot].as_mut() else { return };
            if let Err(corrupt) = worker.begin(exchange, now_ms(), deadline_ms) {
                self.condemn(worker, corrupt);
            }
        }
        self.fill_ahead(members, slot);
    }

    /// Moves waiting requests ahead into a quick worker's ring.
    fn fill_ahead(&self, members: &mut Members, slot: usize) {
        if self.phase.get() == Phase::Retiring {
            return;
        }
        while members.workers[slot].as_ref().is_some_and(Worker::can_lead) {
            let Some(exchange) = members.next_waiting() else { return };
            let Some(worker) = members.workers[slot].as_mut() else { return };
            match worker.lead(&exchange) {
                Ok(true) => {}
                Ok(false) => return members.wait_again([exchange]),
                Err(corrupt) => {
                    self.condemn(worker, corrupt);
                    return members.wait_again([exchange]);
                }
            }
        }
    }

    /// What lies ahead of a worker that will not come to it goes to others.
    fn redistribute(&self, members: &mut Members, slot: usize) {
        let Some(worker) = members.workers[slot].as_mut() else { return };
        let withdrawn = worker.withdraw_ahead();
        members.wait_again(withdrawn);
        self.serve_waiting(members);
    }

    /// Gives waiting requests to idle workers.
    fn serve_waiting(&self, members: &mut Members) {
        while !members.queue.is_empty() {
            let Some(slot) = members.idle.pop() else { return };
            self.give_work(members, slot);
        }
    }

    fn should_leave(&self, members: &Members, slot: usize) -> bool {
        if self.phase.get() == Phase::Retiring && members.queue.is_empty() {
            return true;
        }
        let Some(worker) = members.workers[slot].as_ref() else { return false };
        let Some(reason) = self.keeping.borrow().sizing.due(worker) else { return false };
        let all = members.workers.iter().flatten();
        let away =
            all.clone().filter(|worker| !matches!(worker.state(), State::Idle | State::Busy));
        if away.count() >= recycle::most_away(all.count()) {
            return false;
        }
        self.counters.borrow_mut().recycled += 1;
        let text = format!("a worker is replaced: {reason}");
        self.say_of(worker, Level::Debug, &text);
        true
    }

    /// Tells a worker without a request to leave.
    fn see_off(&self, worker: &mut Worker) {
        let until_ms = now_ms() + LEAVING_GRACE_MS;
        if worker.process.drain(until_ms).is_err() {
            self.kill(worker);
        }
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
        let text = format!("{} took {took_ms} ms\n{backtrace}", exchange.label());
        for text in text.trim_end().lines() {
            let request = Some(exchange.request_id);
            self.slow_log.write(Level::Warn, LogEvent { request, text, ..self.event(worker) });
        }
    }

    fn log(&self, worker: &Worker, line: LogLine<'_>) {
        let text = String::from_utf8_lossy(line.text);
        self.say_of(worker, Level::from_syslog(line.severity), &text);
    }

    fn say_of(&self, worker: &Worker, level: Level, text: &str) {
        self.error_log.write(level, LogEvent { text, ..self.event(worker) });
    }

    /// An event about a worker and the request that it has.
    fn event(&self, worker: &Worker) -> LogEvent<'_> {
        LogEvent {
            app: Some(&self.settings.app),
            worker: worker.process.pid,
            request: worker.exchange.as_ref().map(|exchange| exchange.request_id),
            ..LogEvent::default()
        }
    }

    /// A worker that broke the protocol is not talked to any more.
    fn condemn(&self, worker: &mut Worker, corrupt: Corrupt) {
        self.report(worker, Reason::WorkerBroke, &corrupt.to_string());
        if let Some(exchange) = worker.exchange.take() {
            exchange.finish(End::Failed(Reason::WorkerBroke));
        }
        // What lies ahead is given to others when its exit is reported.
        self.kill(worker);
    }

    fn kill(&self, worker: &mut Worker) {
        if worker.process.life.kill() == Moved::Yes {
            self.signal(worker.process.number, SIGKILL);
        }
    }

    fn signal(&self, worker: u64, signal: i32) {
        if let Some(zygote) = self.zygote.borrow().as_ref()
            && let Err(error) = zygote.signal(worker, signal)
        {
            self.error_log.note(Level::Error, &format!("cannot signal a worker: {error}"));
        }
    }

    fn report(&self, worker: &Worker, reason: Reason, text: &str) {
        let reason = Some(reason);
        self.error_log.write(Level::Error, LogEvent { reason, text, ..self.event(worker) });
    }
}

/// Fixed by Linux on every architecture.
const SIGKILL: i32 = 9;
