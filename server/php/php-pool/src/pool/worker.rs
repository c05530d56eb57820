//! The gateway's end of one worker: its ring, its doorbell, and its requests.
//!
//! Owned by the pool. A worker processes up to `concurrency` requests. While the requests of a worker
//! with a concurrency of one are quick, its ring also holds a backlog, so that it need not be woken for
//! each request. A request that it has not started can be withdrawn and given to another worker.
//! Invariants: this worker never responds to a withdrawn request; a corrupt ring ends it.
//!
//! [`sending`] is the direction to the worker, [`receive`] the direction from it.

mod receive;
mod sending;

use super::activity::ActiveSlots;
use super::direct::{DirectConnections, Ends};
use super::leases::{Lease, Leases};
use super::routes::RequestCounts;
use super::settings::PoolSettings;
use super::startup_output::StartupOutput;
use crate::allowance::Allowance;
use crate::exchange::{End, Exchange};
use crate::worker_id::WorkerId;
use outboard_buffer::{Account, Held};
use outboard_log::Reason;
use outboard_reactor::{Source, TaskId, wake};
use outboard_ring::doorbell::Doorbell;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::spsc::Corrupt;
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::worker::lifecycle::State;
use outboard_trace::Scope;
pub(crate) use receive::{FrameOutcome, WorkerMessage};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

/// The share of `limits.memory` that the operations of one worker may hold, in eighths.
const MEMORY_EIGHTHS: usize = 2;

/// A frame that made the gateway panic.
pub(super) const PANICKED: Corrupt =
    Corrupt { what: "a frame that made the gateway panic; standard error has the message" };

/// What a worker is made of.
#[derive(Debug)]
pub(super) struct NewWorker {
    pub(super) id: WorkerId,
    pub(super) is_own: bool,
    pub(super) process: WorkerProcess,
    pub(super) output: Option<OwnedFd>,
    pub(super) allowance: Rc<Allowance>,
    pub(super) doorbell_source: Option<Source>,
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    /// Whether the zygote of this thread has forked it; otherwise it is borrowed.
    pub(crate) is_own: bool,
    /// Its process, ring and lifecycle.
    pub(crate) process: WorkerProcess,
    /// Requests that it may process at a time.
    concurrency: usize,
    /// Whether it runs a worker script, and may send frames without a request.
    is_resident: bool,
    /// How much it may write to the log.
    pub(super) allowance: Rc<Allowance>,
    /// Its requests, including the backlog.
    pub(super) leases: Leases,
    /// The connections whose sockets it has.
    pub(super) direct: DirectConnections,
    /// Requests in its ring behind the running one, in order.
    backlog: VecDeque<Tag>,
    /// Requests that are not completely in the ring, in order.
    unsent: VecDeque<Tag>,
    /// Frames that are not part of a request, and for which the ring had no room.
    unsent_frames: VecDeque<(FrameKind, Tag, Vec<u8>)>,
    /// Their memory, counted with that of its operations.
    unsent_held: Held,
    /// Operations that the lead's thread has not begun yet.
    forwarded_bytes: usize,
    /// Tasks that are woken once there are none.
    waiting_for_room: Waiters,
    /// The request of the last body frame, whose client may be too slow.
    stalled_by: Option<Tag>,
    /// Requests that are paused until their clients have read the response so far.
    paused: Vec<Tag>,
    /// The number of quick requests since a slow one.
    consecutive_quick: u32,
    /// Whether its doorbell has to be rung at the end of the turn.
    doorbell_is_due: bool,
    /// When it was killed.
    pub(super) killed_ms: Option<u64>,
    /// Whether it has broken the protocol.
    pub(super) is_broken: bool,
    /// When its fork was ordered, and how long it took until it was ready.
    ordered: Instant,
    start_us: Option<u64>,
    /// Whether its exit is being handled.
    pub(super) has_exited: bool,
    /// Until it is ready: its output, to read the rest if it dies.
    pub(super) output: Option<OwnedFd>,
    /// Its output while it starts.
    pub(super) startup_output: StartupOutput,
    activity: Activity,
    /// Whether the pool's list of workers with room has it.
    pub(crate) is_listed: bool,
    /// Whether it is kept for when another one dies ([`Roster::reserve`](super::roster::Roster::reserve)).
    pub(crate) is_reserve: bool,
    /// Its requests since its memory was last measured.
    pub(crate) request_counts: RequestCounts,
    /// Its doorbell, registered in the loop's epoll while it lives.
    doorbell_source: Option<Source>,
}

/// The pool's list of active workers, and whether it has this one.
#[derive(Debug)]
struct Activity {
    slots: Rc<ActiveSlots>,
    slot: usize,
    is_active: bool,
}

impl Drop for Activity {
    fn drop(&mut self) {
        if self.is_active {
            self.slots.remove(self.slot);
        }
    }
}

/// Tasks that are woken when the worker is gone, if not before.
#[derive(Debug, Default)]
struct Waiters(Vec<TaskId>);

impl Drop for Waiters {
    fn drop(&mut self) {
        self.0.drain(..).for_each(wake);
    }
}

impl Worker {
    /// A worker of a pool with these settings and list of active workers; its operations are counted below `memory`.
    pub(super) fn new(
        new: NewWorker,
        settings: &PoolSettings,
        slots: Rc<ActiveSlots>,
        memory: &Rc<Account>,
    ) -> Self {
        let NewWorker { id, is_own, process, output, allowance, doorbell_source } = new;
        slots.add(id.slot);
        let activity = Activity { slots, slot: id.slot, is_active: true };
        Self {
            id,
            is_own,
            process,
            output,
            concurrency: settings.concurrency(),
            is_resident: settings.is_resident(),
            allowance,
            leases: Leases::default(),
            direct: DirectConnections::default(),
            backlog: VecDeque::new(),
            unsent: VecDeque::new(),
            unsent_frames: VecDeque::new(),
            unsent_held: Account::below(memory, MEMORY_EIGHTHS).hold(0),
            forwarded_bytes: 0,
            waiting_for_room: Waiters::default(),
            stalled_by: None,
            paused: Vec::new(),
            consecutive_quick: 0,
            doorbell_is_due: false,
            killed_ms: None,
            is_broken: false,
            ordered: Instant::now(),
            start_us: None,
            has_exited: false,
            startup_output: StartupOutput::default(),
            activity,
            is_listed: false,
            is_reserve: false,
            request_counts: RequestCounts::default(),
            doorbell_source,
        }
    }

    /// How long it took from the order to fork until it was ready; `None` of a borrowed one.
    pub(super) fn start_us(&self) -> Option<u64> {
        self.start_us.filter(|_| self.is_own)
    }

    /// The account of its operations.
    pub(crate) fn memory(&self) -> &Rc<Account> {
        self.unsent_held.account()
    }

    /// The span of one of its requests, if that is traced.
    pub(crate) fn trace_of(&self, request: Tag) -> Option<Scope> {
        self.leases.get(request)?.exchange.trace.clone()
    }

    pub(crate) fn state(&self) -> State {
        self.process.lifecycle.state()
    }

    /// Whether it can process requests, now or after those that it has.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state(), State::Idle | State::Busy)
    }

    /// Its direct connections. What is done to them may take frames, so its ring is polled.
    pub(super) fn ends(&mut self) -> Ends<'_> {
        self.activate();
        Ends {
            connections: &mut self.direct,
            process: &mut self.process,
            leases: &mut self.leases,
            id: self.id,
            is_sequential: self.concurrency == 1,
        }
    }

    /// Whether direct connections wait for a request that it has.
    pub(super) fn holds_up_clients(&self) -> bool {
        self.concurrency == 1 && self.in_flight() > 0 && !self.direct.is_empty()
    }

    /// Has its ring polled.
    pub(super) fn activate(&mut self) {
        if !std::mem::replace(&mut self.activity.is_active, true) {
            self.process.channel.cancel_sleep();
            self.activity.slots.add(self.id.slot);
        }
    }

    /// Whether its ring need not be polled until it rings. Its doorbell is armed.
    pub(super) fn rest_if_idle(&mut self) -> bool {
        let is_idle = self.state() == State::Idle && self.is_quiet();
        self.activity.is_active = !is_idle;
        is_idle
    }

    /// Whether it could be another thread's: nothing is under way, and no connection is with it.
    pub(super) fn has_nothing_under_way(&self) -> bool {
        self.direct.is_empty() && self.is_quiet()
    }

    /// Whether no request and no frame is on its way to it, and no operation to the lead's thread.
    fn is_quiet(&self) -> bool {
        self.leases.len() == 0
            && self.unsent_frames.is_empty()
            && self.forwarded_bytes == 0
            && self.paused.is_empty()
            && !self.doorbell_is_due
    }

    /// Another descriptor of the doorbell that it rings.
    pub(super) fn clone_doorbell(&self) -> io::Result<Doorbell> {
        let source = self.doorbell_source.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Doorbell::from_fd(source.as_fd().try_clone_to_owned()?))
    }

    /// Its process, for another thread.
    pub(super) fn into_process(self) -> WorkerProcess {
        self.process
    }

    /// The number of its requests without the backlog.
    pub(crate) fn in_flight(&self) -> usize {
        self.leases.len() - self.backlog.len()
    }

    /// A backlog is that of a worker with one request at a time, and has requests that are not started; memory is counted
    /// for the frames that wait for room.
    fn check(&self) {
        debug_assert!(self.backlog.is_empty() || self.concurrency == 1, "{:?}", self.backlog);
        let is_waiting =
            |tag: &Tag| self.leases.get(*tag).is_some_and(|lease| lease.timing.is_none());
        debug_assert!(self.backlog.iter().all(is_waiting), "{:?}", self.backlog);
        debug_assert_eq!(self.unsent_frames.is_empty(), self.unsent_held.bytes() == 0);
    }

    /// Whether it can be given a request.
    pub(crate) fn has_room(&self) -> bool {
        matches!(self.state(), State::Idle | State::Busy)
            && self.in_flight() < self.concurrency
            && !self.is_reserve
    }

    /// Whether it can cancel a request without ending others.
    pub(crate) fn can_cancel(&self) -> bool {
        self.concurrency > 1
    }

    /// The request that has been running longest.
    pub(crate) fn oldest(&self) -> Option<&Lease> {
        let running = self.leases.iter().filter(|lease| lease.timing.is_some());
        running.min_by_key(|lease| lease.timing.map(|timing| timing.started_ms))
    }

    /// How long its oldest request has been running; `None` without one.
    pub(crate) fn busy_ms(&self, now_ms: u64) -> Option<u64> {
        self.oldest().map(|lease| lease.took_ms(now_ms))
    }

    /// The request that a message belongs to: that with the tag, or the only one.
    fn lease_of_message(&self, tag: Tag) -> Option<&Lease> {
        let only = || self.oldest().filter(|_| self.in_flight() == 1);
        self.leases.get(tag).or_else(only)
    }

    /// The id of the request that a message belongs to.
    pub(crate) fn request_id(&self, tag: Tag) -> Option<u64> {
        self.lease_of_message(tag).map(|lease| lease.exchange.request_id)
    }

    /// Stores a logged line with the request that it belongs to.
    pub(crate) fn record_request_log(&self, tag: Tag, line: &str) {
        if let Some(lease) = self.lease_of_message(tag) {
            lease.exchange.record_log_line(line);
        }
    }

    /// Fails all of its requests. Returns them, oldest first.
    pub(crate) fn fail(&mut self) -> Vec<Rc<Exchange>> {
        self.ends().fail();
        let reason =
            if self.is_broken { Reason::WorkerProtocolError } else { Reason::WorkerCrashed };
        let leases = self.leases.tags().into_iter().filter_map(|tag| self.leases.remove(tag));
        let failed: Vec<_> = leases.map(|lease| lease.exchange).collect();
        for exchange in &failed {
            exchange.finish(End::Failed(reason));
        }
        failed
    }

    /// Stores output while it starts.
    pub(crate) fn record_startup_output(&mut self, bytes: &[u8]) {
        // Also if it has been ordered to end meanwhile, since another one had failed.
        if self.process.lifecycle.ready_ms().is_none() {
            self.startup_output.record(bytes);
        }
    }
}
