//! The PHP workers of one app in one generation, and the queue of requests.
//!
//! Connections submit exchanges; [`Rings`] polls the rings; the [`manager`] forks workers,
//! enforces deadlines and sizes the pool. [`Pool`] itself is a façade over parts that own their state:
//!
//! ```text
//!  Pool ┬ manager, processes, polling, threads      what happens when: the only files that see all parts
//!       ├ Dispatcher ┬ Sizing, Replacements         how many workers, and which leave
//!       │            ├ OperationQueue               what workers request of the gateway
//!       │            └ Borrower, Fairness           workers of other threads
//!       ├ Forks, Siblings, SnapshotNotes            processes and their boots
//!       └ PoolCore   ┬ Members = Roster, Queue, LentWorkers
//!                    ├ Lifecycle, PhpStart          the phase, and whether PHP runs
//!                    └ Shard, PoolLog, Counters     the other threads, logs and counts
//! ```
//!
//! A part calls only those below it, and returns what has happened. Invariants: the queue is bounded; a request is
//! started by one worker only; the death of a worker fails exactly the requests that it had started.

mod activity;
mod core;
mod counters;
mod deadlines;
mod direct;
mod direct_event;
mod dispatch;
pub(crate) mod exits;
mod forks;
mod leases;
mod leaving;
mod lending;
mod lifecycle;
mod log;
mod manager;
mod members;
pub mod operations;
mod parked;
mod php_start;
mod placement;
mod polling;
pub(crate) mod processes;
mod queue;
mod replacements;
mod rest;
mod roster;
mod routes;
mod settings;
mod sizing;
mod snapshots;
mod startup_output;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
pub(crate) mod tests;
mod threads;
mod ticks;
mod worker;
mod worker_output;
mod zygote;

use crate::Recent;
use crate::exchange::{Exchange, ExchangeSettings};
use crate::freshness::Freshness;
use crate::rings::{PolledRings, Rings};
use activity::ActiveSlots;
use core::PoolCore;
use dispatch::Dispatcher;
use forks::Forks;
use lending::siblings::Siblings;
use lifecycle::Lifecycle;
use log::PoolLog;
use operations::Operations;
use outboard_admin_api::status as api;
use outboard_buffer::Account;
use outboard_log::{ErrorLog, Level, Reason};
use outboard_reactor::now_ms;
use outboard_ring::control::RequestRead;
use outboard_ring::direct::Greeting;
use php_start::PhpStart;
use routes::Routes;
use snapshots::SnapshotNotes;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use worker::Worker;

pub use crate::worker_id::WorkerId;
pub use direct_event::DirectEvent;
pub use lending::shards::{PoolShards, Shard};
pub use lifecycle::PendingRequest;
pub use parked::DirectConnection;
pub use settings::PoolSettings;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// PHP did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    /// The app.
    pub app: String,
    /// The reason, with the output of PHP.
    pub message: String,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PHP of app {} did not start: {}", self.app, self.message)
    }
}

impl std::error::Error for StartError {}

/// The pool; shared by the connections, the idle hook and the manager.
#[derive(Debug)]
pub struct Pool {
    core: Rc<PoolCore>,
    dispatcher: Dispatcher,
    forks: Forks,
    /// The zygotes of the other threads' pools.
    siblings: Siblings,
    snapshots: SnapshotNotes,
    polling: Polling,
}

/// What the polling of the rings remembers between turns of the loop.
#[derive(Debug, Default)]
struct Polling {
    /// Reused for each frame.
    frame_buffer: RefCell<Vec<u8>>,
    /// Whether a worker had a backlog when the loop slept.
    has_backlog: Cell<bool>,
    /// When requests of direct connections were looked at.
    watched_ms: Cell<u64>,
    /// The active worker that is polled first; it changes, so that each is first at times.
    first_active: Cell<usize>,
}

impl Pool {
    /// A pool without a manager.
    fn new(
        settings: PoolSettings,
        shard: Shard,
        error_log: Rc<ErrorLog>,
        slow_log: Rc<ErrorLog>,
        rings: Rc<Rings>,
    ) -> Rc<Self> {
        let dependents = if shard.is_lead() { shard.count() - 1 } else { 0 };
        Rc::new_cyclic(|pool: &Weak<Self>| {
            let polled: Weak<dyn PolledRings> = pool.clone();
            let core = Rc::new(PoolCore {
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                lifecycle: Lifecycle::new(dependents),
                log: PoolLog::new(&settings, error_log, slow_log),
                members: RefCell::default(),
                active: ActiveSlots::new(rings, polled),
                zygote: RefCell::default(),
                php: RefCell::new(PhpStart::new()),
                counters: RefCell::default(),
                routes: RefCell::new(Routes::new(settings.is_resident())),
                settings,
                shard,
            });
            Self {
                dispatcher: Dispatcher::new(core.clone()),
                core,
                forks: Forks::default(),
                siblings: Siblings::default(),
                snapshots: SnapshotNotes::default(),
                polling: Polling::default(),
            }
        })
    }

    /// Submits a request: it is assigned to a worker with room at once, or queued.
    ///
    /// # Errors
    /// The reason why the request cannot be queued.
    pub fn submit(
        &self,
        exchange: Rc<Exchange>,
        local_peer: Option<SocketAddr>,
    ) -> Result<(), Reason> {
        debug_assert!(exchange.assignment.get().is_none(), "a worker has the request already");
        self.dispatcher.submit(exchange, local_peer)
    }

    /// The client of an exchange is gone: the request is removed from the queue, withdrawn from its
    /// worker, or aborted if it was started.
    pub fn abandon(&self, exchange: &Rc<Exchange>) {
        self.dispatcher.abandon(exchange);
    }

    /// Gives a worker the connection of the current task, with the frame of a request that the next ones may be like.
    /// `None` if all have as many connections as they can have.
    pub fn park(
        &self,
        template: &[u8],
        socket: BorrowedFd<'_>,
        greeting: Greeting,
        settings: ExchangeSettings,
    ) -> Option<DirectConnection> {
        let is_serving = self.core.settings.has_direct && self.core.lifecycle.is_serving();
        is_serving.then(|| self.core.park(template, socket, greeting, settings)).flatten()
    }

    /// Announces a request.
    pub fn expect_request(&self) -> PendingRequest {
        self.core.lifecycle.expect_request()
    }

    /// A successor has taken over: queued, running and pending requests are finished within
    /// `drain_timeout_ms`, then all processes end.
    pub fn retire(&self, drain_timeout_ms: u64) {
        let core = &self.core;
        if core.lifecycle.is_gone() {
            return;
        }
        core.lifecycle.retire(now_ms() + drain_timeout_ms);
        self.dispatcher.use_reserve(&mut core.members.borrow_mut());
        self.continue_retiring();
        core.lifecycle.demand().set();
    }

    /// Whether requests are handled without waiting for a start.
    pub fn is_serving(&self) -> bool {
        self.core.lifecycle.is_serving()
    }

    /// Whether a successor has taken over. The pool must not be given new work then.
    pub fn is_retired(&self) -> bool {
        self.core.lifecycle.is_retired()
    }

    /// Whether no process is left.
    pub fn is_gone(&self) -> bool {
        self.core.lifecycle.is_gone()
    }

    /// Sets the implementation of operations; until then all are refused.
    pub fn set_operations(&self, operations: Rc<dyn Operations>) {
        self.dispatcher.operations.set(operations);
    }

    /// Sets the account of its workers' operations. It applies to workers that are forked later.
    pub fn set_memory(&self, account: Rc<Account>) {
        self.dispatcher.operations.set_memory(account);
    }

    /// Sets where slow requests and errors are remembered.
    pub fn set_recent(&self, recent: Rc<Recent>) {
        self.core.log.set_recent(recent);
    }

    /// The slow requests and errors of all pools of the thread.
    pub fn recent(&self) -> Rc<Recent> {
        self.core.log.recent()
    }

    /// The present status.
    pub fn status(&self) -> api::Pool {
        let snapshot = if self.is_retired() { None } else { self.snapshots.status() };
        api::Pool { snapshot, ..status::of(&self.core, &self.dispatcher.sizing.borrow()) }
    }

    /// The name of its app.
    pub fn app(&self) -> &str {
        &self.core.settings.app
    }

    /// The processes of its workers.
    pub fn worker_pids(&self) -> Vec<i32> {
        let members = self.core.members.borrow();
        members.roster.all().filter_map(|worker| worker.process.pid).collect()
    }

    /// Requests that workers handle, and those that wait.
    pub fn load(&self) -> (usize, usize) {
        let members = self.core.members.borrow();
        (members.roster.all().map(Worker::in_flight).sum(), members.queue.len())
    }

    /// Whether any script of classic mode has called `Outboard\snapshot()`.
    pub fn knows_snapshots(&self) -> bool {
        self.snapshots.has_any()
    }

    /// Whether the script with this `SCRIPT_NAME` has.
    pub fn takes_snapshot(&self, script: &[u8]) -> bool {
        self.snapshots.has(script)
    }

    /// What the last boot of the worker script has read of a request; `None` before the first one is complete.
    pub fn request_reads(&self) -> Option<Rc<[RequestRead]>> {
        self.core.php.borrow().boot.request_reads.clone()
    }

    /// Whether workers are forks of the booted script.
    pub fn takes_snapshots(&self) -> bool {
        self.core.settings.forks_script() && !self.core.settings.runs_program()
    }

    /// Whether workers are rewound after each request.
    pub fn is_rewinding(&self) -> bool {
        self.core.php.borrow().boot.rewind.is_some()
    }

    /// Whether its workers have Xdebug.
    pub fn is_debugged(&self) -> bool {
        self.core.settings.is_debugged
    }

    /// Unique in this process.
    pub(crate) fn id(&self) -> u64 {
        self.core.id
    }

    pub(crate) fn settings(&self) -> &PoolSettings {
        &self.core.settings
    }

    /// Logs an event of the app.
    pub(crate) fn log_note(&self, level: Level, text: &str) {
        self.core.log.log(level, text);
    }

    /// Sets whom it tells what the start of its script has read.
    pub(crate) fn set_freshness(&self, freshness: Arc<Freshness>) {
        self.snapshots.set_freshness(freshness);
    }

    /// Goes on counting where the pool ended that it replaces.
    pub(crate) fn continue_counts(&self, before: &Self) {
        self.core.counters.borrow_mut().continue_from(before.core.counters.take());
    }
}
