//! The PHP workers of one app in one generation, and the queue of requests.
//!
//! Connections submit exchanges; [`Rings`] polls the rings; the [`manager`] forks workers,
//! enforces deadlines and sizes the pool. Invariants: the queue is bounded; a request is started by one
//! worker only; the death of a worker fails exactly the requests that it had started.

mod activity;
mod allowance;
mod crash_loop;
mod dispatch;
mod fairness;
mod leases;
mod lent_exits;
mod loans;
mod manager;
pub mod members;
mod messages;
pub mod operations;
mod placement;
mod polling;
mod recycling;
mod reports;
mod reserve;
mod retirement;
mod routes;
mod settings;
mod shards;
mod siblings;
mod snapshot;
mod snapshot_scripts;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
pub(crate) mod tests;
mod worker;
mod worker_output;

use crate::exchange::Exchange;
use crate::freshness::Freshness;
use crate::recent_slow::RecentSlow;
use crate::rings::Rings;
use activity::ActiveSlots;
use allowance::Allowance;
use leases::Timing;
use loans::Borrowing;
use manager::ManagerState;
use members::{Members, Origin, QueuedRequest};
use operations::{NoOperations, Operations, RemoteWorker, Requester};
use outboard_buffer::Account;
use outboard_log::{ErrorLog, Reason};
use outboard_reactor::{Event, now_ms};
use outboard_ring::channel::{Capacities, Rewinds, WaitCall, Waits};
use outboard_ring::frame::FRAME_HEADER_BYTES;
use outboard_supervisor::zygote::{SiblingEnds, Zygote};
use placement::Placement;
use recycling::Replacement;
use routes::Routes;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use worker::Worker;

pub use crate::worker_id::WorkerId;
pub use manager::StartError;
pub use retirement::PendingRequest;
pub use settings::PoolSettings;
pub use shards::{PoolShards, Shard};

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: u64,
    pub(crate) queued: u64,
    pub(crate) rejected: u64,
    pub(crate) crashes: u64,
    pub(crate) deadlines: u64,
    pub(crate) recycled: u64,
    pub(crate) forks: u64,
    /// Waits of workers that have exited, by [`WaitCall`].
    pub(crate) waits: [Waits; WaitCall::ALL.len()],
    /// Rewinds of workers that have exited.
    pub(crate) rewinds: Rewinds,
    /// How many workers have become ready, and how long that took from the order to fork, in µs.
    pub(crate) starts: u64,
    pub(crate) start_us: u64,
}

/// The lifecycle of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// PHP is starting, for the first time or again.
    Starting,
    /// Requests are served.
    Serving,
    /// A successor has taken over: queued, running and [pending](retirement) requests are finished.
    Retiring,
    /// No process is left.
    Gone,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The pool; shared by the connections, the idle hook and the manager.
#[derive(Debug)]
pub struct Pool {
    /// Unique in this process.
    id: u64,
    weak_self: Weak<Self>,
    settings: PoolSettings,
    /// Its place among the pools of the app, one on each thread.
    shard: Shard,
    borrows: Cell<Option<Borrowing>>,
    /// The last result of [`Pool::is_overtaken`], and when it was found.
    overtaken: Cell<(u64, bool)>,
    /// Whether a worker had a backlog when the loop slept.
    has_backlog: Cell<bool>,
    /// Shards that wait for a zygote.
    splits: RefCell<Vec<(usize, SiblingEnds)>>,
    /// Pools of other threads whose zygotes may still live: they would die with the first one.
    dependents: Cell<usize>,
    /// The zygotes of other shards, and the last number of one.
    siblings: RefCell<HashMap<usize, u64>>,
    last_sibling: Cell<u64>,
    /// Workers of other threads whose operations are carried out here.
    remote_workers: RefCell<HashMap<WorkerId, Rc<RemoteWorker>>>,
    members: RefCell<Members>,
    /// Its workers whose rings are polled.
    active: Rc<ActiveSlots>,
    zygote: RefCell<Option<Zygote>>,
    placement: Placement,
    phase: Cell<Phase>,
    /// Requests that may still be submitted.
    pending_requests: Cell<usize>,
    counters: RefCell<Counters>,
    manager: RefCell<ManagerState>,
    /// Set when a request is queued or a worker's state changes: wakes the manager.
    demand: Event,
    /// Whether the manager sleeps until something wakes it.
    is_resting: Cell<bool>,
    /// Set when the phase changed.
    phase_changed: Event,
    /// Reused for each frame.
    frame_buffer: RefCell<Vec<u8>>,
    /// Reused for each completion.
    completion_buffer: RefCell<Vec<u8>>,
    operations: RefCell<Rc<dyn Operations>>,
    /// The state of its snapshot, if that is renewed.
    freshness: RefCell<Option<Arc<Freshness>>>,
    /// The account of its workers' operations.
    memory: RefCell<Rc<Account>>,
    /// Operations that are not begun yet.
    pending_operations: RefCell<VecDeque<(Requester, Vec<u8>)>>,
    /// Workers that have exited and whose operations are not forgotten yet.
    departed_workers: RefCell<Vec<WorkerId>>,
    routes: RefCell<Routes>,
    /// Whether lines of workers were added to the log and not written.
    log_is_dirty: Cell<bool>,
    /// The active worker that is polled first; it changes, so that each is first at times.
    first_active: Cell<usize>,
    /// Forks that have processed their request since the last poll.
    used_forks: Cell<usize>,
    replacements: RefCell<Vec<Replacement>>,
    /// The log allowance of the zygote, and with a fork per request of all forks together.
    allowance: Rc<Allowance>,
    error_log: Rc<ErrorLog>,
    slow_log: Rc<ErrorLog>,
    /// Scripts of classic mode that have called `Outboard\snapshot()`, by `SCRIPT_NAME`.
    snapshot_scripts: RefCell<BTreeSet<Box<[u8]>>>,
    /// What was written there, of all pools of the thread.
    recent_slow: RefCell<Rc<RecentSlow>>,
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
        Rc::new_cyclic(|weak_self| Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            weak_self: weak_self.clone(),
            manager: RefCell::new(ManagerState::new(&settings, &shard)),
            routes: RefCell::new(Routes::new(settings.is_resident())),
            allowance: Rc::new(Allowance::new(settings.log_rate)),
            placement: Placement::new(&settings),
            settings,
            shard,
            borrows: Cell::new(None),
            overtaken: Cell::new((0, false)),
            has_backlog: Cell::default(),
            splits: RefCell::default(),
            dependents: Cell::new(dependents),
            siblings: RefCell::default(),
            last_sibling: Cell::new(0),
            remote_workers: RefCell::default(),
            members: RefCell::default(),
            active: ActiveSlots::new(rings, weak_self.clone()),
            zygote: RefCell::default(),
            phase: Cell::new(Phase::Starting),
            pending_requests: Cell::default(),
            counters: RefCell::default(),
            demand: Event::default(),
            is_resting: Cell::new(false),
            phase_changed: Event::default(),
            frame_buffer: RefCell::default(),
            completion_buffer: RefCell::default(),
            operations: RefCell::new(Rc::new(NoOperations)),
            freshness: RefCell::default(),
            memory: RefCell::new(Account::detached()),
            pending_operations: RefCell::default(),
            departed_workers: RefCell::default(),
            log_is_dirty: Cell::new(false),
            first_active: Cell::new(0),
            used_forks: Cell::new(0),
            replacements: RefCell::default(),
            error_log,
            slow_log,
            snapshot_scripts: RefCell::default(),
            recent_slow: RefCell::default(),
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
        self.counters.borrow_mut().requests += 1;
        self.end_rest();
        if matches!(self.phase.get(), Phase::Gone) {
            return Err(Reason::AppDown);
        }
        if self.is_refusing() {
            self.counters.borrow_mut().rejected += 1;
            return Err(Reason::AppDown);
        }
        if exchange.frame.len() > MAX_FRAME_BYTES {
            return Err(Reason::HeadersTooLarge);
        }
        exchange.local_peer.set(local_peer);
        exchange.route.set(self.routes.borrow_mut().number(&exchange.frame));
        let mut members = self.members.borrow_mut();
        if let Some(slot) = members.least_loaded() {
            self.assign(&mut members, slot, exchange);
            return Ok(());
        }
        let may_overtake = members.queue.is_empty() && !self.is_overtaken(&members);
        if may_overtake && self.assign_to_backlog(&mut members, &exchange) {
            return Ok(());
        }
        // A request that an idle worker of another thread is for does not wait in the queue.
        if self.is_queue_full(&members, self.shard.all_free_elsewhere()) {
            self.counters.borrow_mut().rejected += 1;
            let is_down =
                self.phase.get() == Phase::Starting && self.manager.borrow().failure.is_some();
            return Err(if is_down { Reason::AppDown } else { Reason::QueueFull });
        }
        self.counters.borrow_mut().queued += 1;
        let origin = Origin::UNKNOWN;
        members.queue.push_back(QueuedRequest { exchange, origin });
        self.publish(&members);
        self.want_worker(&members);
        if std::mem::take(&mut self.manager.borrow_mut().is_slow) {
            self.demand.set();
        }
        Ok(())
    }

    /// Whether as many requests as may wait do so, on all threads, and `more` in addition.
    fn is_queue_full(&self, members: &Members, more: usize) -> bool {
        let queued = members.queue.len() + self.shard.queued_elsewhere();
        queued >= self.settings.queue_length.saturating_add(more)
    }

    /// The client of an exchange is gone: the request is removed from the queue, withdrawn from its
    /// worker, or aborted if it was started.
    pub fn abandon(&self, exchange: &Rc<Exchange>) {
        exchange.abandon();
        let mut members = self.members.borrow_mut();
        let Some(assignment) = exchange.assignment.get() else {
            members.queue.retain(|queued| !Rc::ptr_eq(&queued.exchange, exchange));
            return self.publish(&members);
        };
        let Some(worker) = members.find(assignment.worker) else { return };
        if worker.leases.get(assignment.tag).is_none() {
            return;
        }
        if worker.withdraw(assignment.tag, now_ms()).is_none() {
            worker.abort(assignment.tag);
            return;
        }
        if worker.has_room() {
            self.assign_next(&mut members, assignment.worker.slot);
        }
    }

    /// Calls a function with the worker of this number, if it exists.
    fn with_worker<R>(&self, number: u64, act: impl FnOnce(&mut Worker) -> R) -> Option<R> {
        let mut members = self.members.borrow_mut();
        members.all_mut().find(|worker| worker.process.number == number).map(act)
    }

    /// The start and deadline of a request that starts now.
    fn timing_from(&self, now_ms: u64) -> Timing {
        Timing { started_ms: now_ms, deadline_ms: now_ms.saturating_add(self.settings.deadline_ms) }
    }
}

/// The longest request frame: it has to fit into a ring.
const MAX_FRAME_BYTES: usize = Capacities::DEFAULT.request_bytes as usize - FRAME_HEADER_BYTES;
