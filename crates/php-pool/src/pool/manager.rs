//! The manager of a pool: starts PHP, forks workers, sizes the pool, enforces deadlines and reaps
//! workers that have exited.
//!
//! One task per pool. It handles the zygote's events at once and everything that depends on time in
//! each tick; the pure plans of `outboard_supervisor` decide. Invariants: a slot is used again only
//! after the zygote has reaped its worker; a pool without work does not tick ([`rest`]).

mod deadlines;
mod forks;
mod growth;
mod queue;
mod reap;
mod rest;
mod sizing;
mod slow;
mod start;
mod zygote;

use super::worker_output::StartupOutput;
use super::{Phase, Pool, PoolSettings, Shard};
use outboard_reactor::{Source, now_ms, sleep, with_deadline, yield_now};
use outboard_ring::control::{RequestRead, Rewind};
use outboard_supervisor::plan::backoff::Backoff;
use rustix::fd::OwnedFd;
use std::rc::Rc;
use std::task::Poll;

pub(super) use reap::add_waits;
pub use start::StartError;

/// The state of the manager; the rest of the pool reads it.
#[derive(Debug)]
pub(super) struct ManagerState {
    pub(super) php_version: String,
    /// How workers are rewound, if they are.
    pub(super) rewind: Option<Rewind>,
    /// What the boot of the script has read of a request.
    pub(super) request_reads: Option<Rc<[RequestRead]>>,
    /// Why they are not, although they should be.
    pub(super) rewind_refused: Option<String>,
    /// Why PHP does not start, while it does not.
    pub(super) failure: Option<String>,
    last_worker: u64,
    /// The pipe that forks for one request share: a pipe for each would be a considerable part of the
    /// cost of a request.
    shared_output: Option<OwnedFd>,
    /// The zygote's output: the pipe, and what was read from it during the start.
    zygote_output: Option<OwnedFd>,
    pub(super) startup_output: StartupOutput,
    /// Whether the manager ticks slowly and a queued request has to wake it.
    pub(super) is_slow: bool,
    /// The number of requests at the last tick.
    requests_at_tick: u64,
    backoff: Backoff,
    /// Until when PHP has to be started; `None` once it is.
    pub(super) started_by_ms: Option<u64>,
    /// Workers of a retiring pool that are still busy then are killed.
    pub(super) retire_deadline_ms: Option<u64>,
    pub(super) sizing: sizing::Sizing,
}

impl ManagerState {
    pub(super) fn new(settings: &PoolSettings, shard: &Shard) -> Self {
        Self {
            php_version: String::new(),
            rewind: None,
            request_reads: None,
            rewind_refused: None,
            failure: None,
            last_worker: 0,
            shared_output: None,
            zygote_output: None,
            startup_output: StartupOutput::default(),
            is_slow: false,
            requests_at_tick: 0,
            backoff: Backoff::new(),
            started_by_ms: None,
            retire_deadline_ms: None,
            sizing: sizing::Sizing::new(settings, shard),
        }
    }

    /// Whether a fork is permitted; after crashes and failed starts it is not for some time.
    pub(super) fn may_fork(&self, now_ms: u64) -> bool {
        self.backoff.may_start(now_ms)
    }

    /// A worker became ready or finished a request.
    pub(super) fn record_success(&mut self) {
        self.failure = None;
        self.backoff.served();
    }
}

/// Runs until no process of the pool is left.
async fn run(pool: Rc<Pool>) {
    while !pool.is_gone() {
        match pool.start_zygote().await {
            Ok(Some(control)) => pool.serve_zygote(&control).await,
            Ok(None) => {}
            Err(message) => pool.start_failed(&message),
        }
        let zygote = pool.zygote.take();
        let phase = pool.zygote_exited();
        let status = match zygote {
            Some(zygote) => zygote::end(zygote, pool.settings.runs_program()).await,
            None => None,
        };
        pool.report_zygote_exit(phase, status);
        if pool.phase.get() == Phase::Retiring {
            pool.lent_workers_forgotten().await;
            pool.phase.set(Phase::Gone);
        }
        let wait_ms = pool.manager.borrow_mut().backoff.failed_to_start(now_ms());
        sleep(if pool.is_gone() { 0 } else { wait_ms }).await;
    }
    pool.phase_changed.set();
    pool.shard.close();
}

impl Pool {
    /// Handles events and ticks until the zygote has exited, has to be killed, or the pool has retired.
    async fn serve_zygote(self: &Rc<Self>, control: &Source) {
        loop {
            let tick_at_ms = self.next_tick_ms(now_ms());
            let woken = std::future::poll_fn(|_| {
                let demand = self.demand.poll();
                if control.poll_readable().is_ready() { Poll::Ready(()) } else { demand }
            });
            let _ = with_deadline(tick_at_ms, woken).await;
            match self.read_events(control) {
                zygote::ReadStatus::Closed => return,
                zygote::ReadStatus::Drained => {}
                zygote::ReadStatus::More => yield_now().await,
            }
            self.tick();
            if self.is_zygote_unresponsive(now_ms()) {
                return;
            }
            if self.is_start_overdue() {
                return self.start_failed(&self.start_timeout_message());
            }
            if self.is_done() {
                return;
            }
        }
    }

    /// Whether it has retired, and nothing is left to be done.
    pub(super) fn is_done(&self) -> bool {
        self.phase.get() == Phase::Retiring
            && self.is_empty()
            && !self.expects_requests()
            && self.dependents.get() == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        let members = self.members.borrow();
        members.queue.is_empty() && members.all().next().is_none() && members.lent.is_empty()
    }

    /// Everything that depends on time.
    fn tick(self: &Rc<Self>) {
        let now_ms = now_ms();
        self.enforce_deadlines(now_ms);
        self.request_slow_backtraces(now_ms);
        self.redistribute_stuck_backlogs(now_ms);
        self.expire_queue(now_ms);
        self.detect_loopback(now_ms);
        self.return_loans(now_ms);
        self.resize(now_ms);
        self.keep_reserve();
        self.continue_retiring();
        self.fork_successors();
        self.place_workers(now_ms);
        self.log_dropped_lines();
    }
}
