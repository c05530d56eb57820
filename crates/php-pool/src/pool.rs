//! The PHP workers of one app in one generation, and the queue in front of them.
//!
//! Connections submit exchanges; the loop's idle hook looks into the rings; the manager
//! ([`manager`]) forks, enforces deadlines and sizes the pool. Invariants: the queue is bounded; a
//! request is given to one worker only and never twice; a worker's end costs exactly the request
//! that it had.

mod allowance;
mod budget;
mod crashing;
mod dispatch;
mod leases;
mod manager;
pub mod members;
pub mod operations;
mod pending_requests;
mod reports;
mod rolling_replacement;
mod routes;
mod settings;
mod status;
#[cfg(test)]
mod tests;
mod worker;
mod worker_output;

use crate::exchange::Exchange;
use allowance::Allowance;
use crashing::Crashing;
use leases::Run;
use members::{Members, Origin, Waiting};
use operations::{Operations, Requester};
use outboard_buffer::Account;
use outboard_log::ErrorLog;
use outboard_log::Reason;
use outboard_reactor::{Event, now_ms};
use outboard_ring::channel::{Capacities, WaitCall, Waits};
use outboard_ring::frame::FRAME_HEADER_BYTES;
use outboard_supervisor::zygote::Zygote;
use rolling_replacement::Replacement;
use routes::Routes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

pub use crate::worker_id::WorkerId;
pub use budget::Budget;
pub use manager::StartError;
pub use pending_requests::PendingRequest;
pub use settings::PoolSettings;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: u64,
    pub(crate) queued: u64,
    pub(crate) rejected: u64,
    pub(crate) crashes: u64,
    pub(crate) deadlines: u64,
    pub(crate) recycled: u64,
    pub(crate) forks: u64,
    /// Waits of workers that have gone, by [`WaitCall`].
    pub(crate) waits: [Waits; WaitCall::ALL.len()],
}

/// Whether and why the pool takes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// PHP is starting, for the first time or again.
    Starting,
    /// Requests are served.
    Serving,
    /// A successor has taken over: what is here or [claimed](pending_requests) is finished.
    Retiring,
    /// No process is left.
    Gone,
}

/// The pool; shared by the connections, the idle hook and the manager.
#[derive(Debug)]
pub struct Pool {
    /// No other pool of this process has it.
    id: u64,
    me: Weak<Self>,
    settings: PoolSettings,
    members: RefCell<Members>,
    zygote: RefCell<Option<Zygote>>,
    phase: Cell<Phase>,
    /// Requests that may still come.
    pending_requests: Cell<usize>,
    counters: RefCell<Counters>,
    manager: RefCell<manager::ManagerState>,
    /// Set when a request had to wait or a worker's state changed: the manager looks sooner.
    demand: Event,
    /// Set when the phase changed.
    phase_changed: Event,
    scratch: RefCell<Vec<u8>>,
    /// Room for a completion.
    completion: RefCell<Vec<u8>>,
    operations: RefCell<Rc<dyn Operations>>,
    /// What is held for the operations of its workers.
    memory: RefCell<Rc<Account>>,
    /// Operations that were asked for and not begun yet.
    asked: RefCell<VecDeque<(Requester, Vec<u8>)>>,
    /// Workers that have gone since the last look.
    left: RefCell<Vec<WorkerId>>,
    routes: RefCell<Routes>,
    crashing: Crashing,
    /// Whether lines of workers were added to the log and not written yet.
    said: Cell<bool>,
    /// Where the next look begins, so that each worker is first at times.
    first_slot: Cell<usize>,
    /// Forks that were used up during the present look.
    used_forks: Cell<usize>,
    replacements: RefCell<Vec<Replacement>>,
    /// What the zygote may write into the log, and with a fork per request all forks together.
    allowance: Rc<Allowance>,
    error_log: Rc<ErrorLog>,
    slow_log: Rc<ErrorLog>,
}

impl Pool {
    /// Hands a request over: to a worker with room at once, or to the queue.
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
        if self.refuses() {
            self.counters.borrow_mut().rejected += 1;
            return Err(Reason::AppDown);
        }
        if exchange.frame.len() > LARGEST_FRAME_BYTES {
            return Err(Reason::HeadersTooLarge);
        }
        exchange.route.set(self.routes.borrow_mut().number(&exchange.frame));
        let mut members = self.members.borrow_mut();
        if let Some(slot) = members.pick() {
            self.begin(&mut members, slot, exchange);
            return Ok(());
        }
        if members.queue.is_empty() && self.lead(&mut members, &exchange) {
            return Ok(());
        }
        if members.queue.len() >= self.settings.queue_length {
            self.counters.borrow_mut().rejected += 1;
            let down = self.phase.get() == Phase::Starting && self.manager.borrow().failing();
            return Err(if down { Reason::AppDown } else { Reason::QueueFull });
        }
        self.counters.borrow_mut().queued += 1;
        let origin = Origin::Unknown;
        members.queue.push_back(Waiting { exchange, local_peer, origin });
        if std::mem::take(&mut self.manager.borrow_mut().slow) {
            self.demand.set();
        }
        Ok(())
    }

    /// The client of an exchange has gone: take it back from the queue or its worker, or tell the
    /// worker if it has started it.
    pub fn abandon(&self, exchange: &Rc<Exchange>) {
        exchange.abandon();
        let mut members = self.members.borrow_mut();
        let Some(place) = exchange.place.get() else {
            members.queue.retain(|waiting| !Rc::ptr_eq(&waiting.exchange, exchange));
            return;
        };
        let Some(worker) = members.find(place.worker) else { return };
        if worker.lease(place.tag).is_none() {
            return;
        }
        if worker.withdraw(place.tag, now_ms()).is_none() {
            worker.abort(place.tag);
            return;
        }
        if worker.has_room() {
            self.give_work(&mut members, place.worker.slot);
        }
    }

    /// The time of a request that begins now.
    fn run_from(&self, now_ms: u64) -> Run {
        Run { since_ms: now_ms, deadline_ms: now_ms.saturating_add(self.settings.deadline_ms) }
    }
}

/// A request frame has to fit into a ring.
const LARGEST_FRAME_BYTES: usize = Capacities::DEFAULT.request_bytes as usize - FRAME_HEADER_BYTES;
