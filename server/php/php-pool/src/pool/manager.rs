//! The manager of a pool: starts PHP, forks workers, sizes the pool, enforces deadlines and reaps
//! workers that have exited.
//!
//! One task per pool. It handles the zygote's events at once and everything that depends on time in
//! each tick; the pure plans of `outboard_supervisor` decide. Invariants: a slot is used again only
//! after the zygote has reaped its worker; a pool without work does not tick ([`ticks`]); few events of a zygote are
//! handled at a time; no request waits for a pool that is gone, or that has no process and starts none.

use super::exits::describe_exit;
use super::lifecycle::Phase;
use super::php_start::BootReport;
use super::{Pool, deadlines, rest, ticks, zygote};
use crate::budget::Budget;
use crate::exchange::Exchange;
use crate::rings::PolledRings;
use outboard_log::{Level, Reason};
use outboard_reactor::{Source, blocking, contain, now_ms, sleep, spawn, with_deadline, yield_now};
use outboard_ring::control::Event;
use outboard_supervisor::loopback;
use outboard_supervisor::plan::scale::Decision;
use outboard_supervisor::zygote::Received;
use std::rc::Rc;
use std::task::Poll;

/// How far the control socket was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadStatus {
    /// It is empty.
    Drained,
    /// It may have more.
    More,
    /// The zygote has closed it, or is to be killed.
    Closed,
}

/// Runs until no process of the pool is left.
pub(super) async fn run(pool: Rc<Pool>) {
    let (core, lifecycle) = (&pool.core, &pool.core.lifecycle);
    while !lifecycle.is_gone() {
        rest::until_needed(core, &pool.siblings, || pool.is_done()).await;
        let started = if pool.is_done() { Ok(None) } else { pool.start_zygote().await };
        match started {
            Ok(Some(control)) => pool.serve_zygote(&control).await,
            Ok(None) => {}
            Err(message) => pool.start_failed(&message),
        }
        let zygote = core.zygote.take();
        let phase = pool.zygote_exited();
        let status = match zygote {
            Some(zygote) => zygote::end(zygote, core.settings.runs_program()).await,
            None => None,
        };
        pool.report_zygote_exit(phase, status);
        if lifecycle.is_retiring() {
            pool.lent_workers_forgotten().await;
            lifecycle.enter(Phase::Gone);
            // If the zygote has died before they had workers.
            core.fail_queue(Reason::AppDown);
        }
        if lifecycle.is_asleep() {
            continue;
        }
        let wait_ms = core.php.borrow_mut().record_failed_start(now_ms());
        sleep(if lifecycle.is_gone() { 0 } else { wait_ms }).await;
    }
    debug_assert!(
        core.members.borrow().queue.is_empty(),
        "a request waits for a pool that is gone"
    );
    lifecycle.changed().set();
    core.shard.close();
}

impl Pool {
    /// Handles events and ticks until the zygote has exited, has to be killed, or the pool has retired or sleeps.
    async fn serve_zygote(self: &Rc<Self>, control: &Source) {
        loop {
            let tick_at_ms = ticks::next_tick_ms(&self.core, &self.dispatcher, now_ms());
            let woken = std::future::poll_fn(|_| {
                let demand = self.core.lifecycle.demand().poll();
                if control.poll_readable().is_ready() { Poll::Ready(()) } else { demand }
            });
            let _ = with_deadline(tick_at_ms, woken).await;
            match self.read_events(control) {
                ReadStatus::Closed => return,
                ReadStatus::Drained => {}
                ReadStatus::More => yield_now().await,
            }
            self.tick();
            if self.is_zygote_unresponsive(now_ms()) {
                return;
            }
            if self.core.php.borrow().is_overdue(now_ms()) {
                return self.start_failed(&self.start_timeout_message());
            }
            if rest::may_begin(&self.core, &self.siblings, now_ms()) {
                return self.core.lifecycle.enter(Phase::Asleep);
            }
            if self.is_done() {
                return;
            }
        }
    }

    /// Whether it has retired, and nothing is left to be done.
    pub(super) fn is_done(&self) -> bool {
        let lifecycle = &self.core.lifecycle;
        lifecycle.is_retiring()
            && self.core.members.borrow().is_empty()
            && !lifecycle.expects_requests()
            && !lifecycle.has_dependents()
    }

    /// Everything that depends on time.
    pub(super) fn tick(self: &Rc<Self>) {
        let (core, dispatcher, now_ms) = (&self.core, &self.dispatcher, now_ms());
        deadlines::enforce(core, now_ms);
        deadlines::request_slow_backtraces(core, now_ms);
        dispatcher.redistribute_stuck_backlogs(now_ms);
        core.expire_queue(now_ms);
        self.detect_loopback(now_ms);
        dispatcher.return_unneeded(now_ms);
        self.resize(now_ms);
        self.keep_reserve();
        self.continue_retiring();
        self.fork_successors();
        dispatcher.placement.place_workers(core, now_ms);
        core.log.log_dropped(core.members.borrow().roster.all());
    }

    /// Handles the events that the zygote has sent.
    fn read_events(self: &Rc<Self>, control: &Source) -> ReadStatus {
        for _ in 0..zygote::EVENTS_PER_TURN {
            let received = match self.core.zygote.borrow().as_ref() {
                Some(zygote) => zygote.receive(),
                None => return ReadStatus::Closed,
            };
            match received {
                Ok(Received::Event(event)) => {
                    if contain(|| self.handle(event)).is_err() {
                        self.log_error("an event of the zygote made the gateway panic");
                        return ReadStatus::Closed;
                    }
                }
                Ok(Received::Nothing) => {
                    control.clear_readable();
                    return ReadStatus::Drained;
                }
                Ok(Received::Closed) => return ReadStatus::Closed,
                Err(error) => {
                    self.log_error(&format!("cannot read the zygote's events: {error}"));
                    return ReadStatus::Closed;
                }
            }
        }
        ReadStatus::More
    }

    pub(super) fn handle(self: &Rc<Self>, event: Event) {
        let core = &self.core;
        match event {
            Event::Started {
                php_version,
                opcache,
                ini_file,
                rewind,
                rewind_refused,
                request_reads,
                ..
            } => {
                if core.php.borrow().is_under_way() {
                    let request_reads = Some(request_reads.into());
                    let boot = BootReport { php_version, rewind, rewind_refused, request_reads };
                    self.started(boot, opcache, ini_file.as_deref());
                }
            }
            Event::BootRead { keys, is_complete, max_age_s } => {
                self.boot_read(keys, is_complete, max_age_s);
            }
            Event::StartFailed { message } => {
                // Unless it has reported its start already.
                if core.php.borrow().is_under_way() {
                    self.start_failed(&message);
                }
            }
            Event::Forked { worker, pid } => {
                core.shard.add_pid(pid);
                core.with_worker(worker, |worker| worker.process.forked(pid));
            }
            Event::ForkFailed { worker, message } => {
                if core.with_worker(worker, |_| ()).is_none() {
                    return;
                }
                self.log_error(&format!("cannot fork a worker: {message}"));
                self.reap(worker, None, &format!("could not be forked ({message})"));
            }
            // The sibling reports its start itself, and its end by its control socket.
            Event::Split { .. } | Event::SiblingExited { .. } => {}
            Event::SplitFailed { message, .. } => {
                self.log_error(&format!("cannot fork the zygote of a thread: {message}"));
            }
            Event::Exited { worker, code, signal } => {
                self.worker_exited(worker, code, &describe_exit(code, signal));
            }
        }
    }

    /// Whether the zygote has not carried out an order in time.
    pub(super) fn is_zygote_unresponsive(&self, now_ms: u64) -> bool {
        let overdue = zygote::describe_overdue(&self.core, now_ms);
        overdue.inspect(|text| self.log_error(text)).is_some()
    }

    /// Adapts the size of the pool to the demand. Without permission of the back-off nothing is forked.
    pub(super) fn resize(&self, now_ms: u64) {
        let (core, dispatcher) = (&self.core, &self.dispatcher);
        if !core.lifecycle.is_serving() {
            return;
        }
        if !core.members.borrow().queue.is_empty() {
            // A response that waits to be read here would make its worker look blocked.
            self.poll_rings(&mut Budget::default());
        }
        let (decision, view) = {
            let mut sizing = dispatcher.sizing.borrow_mut();
            sizing.sample_memory(core, now_ms);
            sizing.decide(&core.members.borrow(), &dispatcher.replacements, now_ms)
        };
        match decision {
            Decision::Grow(count, _) => {
                if !core.php.borrow().may_fork(now_ms) {
                    return;
                }
                dispatcher.sizing.borrow_mut().grown(now_ms);
                for _ in 0..count {
                    self.fork();
                }
            }
            Decision::Shrink(count, _) => {
                dispatcher.sizing.borrow_mut().shrunk(now_ms);
                dispatcher.shrink(count);
            }
            Decision::Hold(_) => {}
        }
        let active = core.members.borrow().active();
        dispatcher.sizing.borrow_mut().grow_elsewhere(&core.shard, active, &view);
        dispatcher.recycle_idle();
    }

    /// Forks a worker for a free slot; returns its number.
    pub(super) fn fork(&self) -> Option<u64> {
        self.forks.fork(&self.core, &self.dispatcher.operations.memory())
    }

    /// Replaces forks that have processed their one request.
    pub(super) fn replace_used_forks(&self) {
        let used = self.forks.take_used();
        if used == 0 || !self.core.lifecycle.is_serving() {
            return;
        }
        let active = self.core.members.borrow().active();
        let vacant = self.dispatcher.sizing.borrow().vacant(active);
        for _ in 0..used.min(vacant) {
            self.fork();
        }
    }

    /// Forks missing successors, and removes replacements that are complete.
    pub(super) fn fork_successors(&self) {
        let replacements = &self.dispatcher.replacements;
        if replacements.is_empty() || !self.core.lifecycle.is_serving() {
            return;
        }
        replacements.remove_complete(&self.core.members.borrow().roster);
        replacements.fork_missing(|| self.fork());
    }

    /// Forks a worker in reserve if the pool has as many workers as it may: to fork one takes some milliseconds,
    /// in which a pool whose workers are all busy answers nobody. Only for workers that are rewound: a fork of
    /// their snapshot is small.
    pub(super) fn keep_reserve(&self) {
        let core = &self.core;
        if core.php.borrow().boot.rewind.is_none() || !core.lifecycle.is_serving() {
            return;
        }
        let is_wanted = self.dispatcher.needs_reserve();
        // Those of other threads can be lent.
        let may_fork = core.shard.is_lead() && core.php.borrow().may_fork(now_ms());
        if is_wanted
            && may_fork
            && let Some(number) = self.fork()
        {
            core.with_worker(number, |worker| worker.is_reserve = true);
        }
    }

    /// Drains workers that a retiring pool does not need, and forks one if it needs one.
    pub(super) fn continue_retiring(&self) {
        let may_fork = || {
            let php = self.core.php.borrow();
            !php.is_under_way() && php.may_fork(now_ms())
        };
        if self.dispatcher.continue_retiring() && may_fork() {
            self.fork();
        }
    }

    /// Finds loopback requests. A worker that requests its own site waits for a worker of the same
    /// pool, and in a full pool for itself. Such requests overtake others, and may fork workers beyond
    /// the maximum. The owner of the connection is determined only when needed and on a thread, because
    /// that reads `/proc`.
    fn detect_loopback(self: &Rc<Self>, now_ms: u64) {
        let core = &self.core;
        if !core.lifecycle.is_serving() || core.settings.loopback_slots == 0 {
            return;
        }
        let suspect = core.members.borrow_mut().queue.take_suspect(now_ms);
        let Some((exchange, peer)) = suspect else { return };
        let (pool, pids) = (self.clone(), core.shard.all_pids());
        spawn(async move {
            if blocking(move || loopback::is_owned_by(peer, &pids)).await {
                pool.prioritize(&exchange);
            }
        });
    }

    /// Moves a loopback request to the head of the queue, and forks a worker for it if permitted.
    pub(super) fn prioritize(&self, exchange: &Rc<Exchange>) {
        let mut members = self.core.members.borrow_mut();
        if !members.queue.prioritize(exchange) {
            return;
        }
        let active = members.active();
        drop(members);
        let slots = self.core.settings.loopback_slots;
        let max = self.dispatcher.sizing.borrow().bounds.max() + slots;
        if active < max {
            self.fork();
        }
    }

    pub(super) fn log_error(&self, text: &str) {
        self.core.log.log(Level::Error, text);
    }
}
