//! The retirement of a pool that a successor replaces, and the requests that may still be submitted to
//! it: their bodies are being received, or their pages composed.
//!
//! A request that may need PHP holds a [`PendingRequest`]. Invariant: a retiring pool has a worker with
//! room for pending requests until the last one is finished or the drain time-out has passed.

use super::members::Members;
use super::{Phase, Pool};
use outboard_log::Reason;
use outboard_reactor::now_ms;
use std::rc::Rc;

/// A request that may still be submitted.
#[derive(Debug)]
pub struct PendingRequest(Rc<Pool>);

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let pool = &self.0;
        pool.pending_requests.update(|pending| pending - 1);
        if pool.pending_requests.get() == 0 && pool.phase.get() == Phase::Retiring {
            pool.demand.set();
        }
    }
}

impl Pool {
    /// Announces a request.
    pub fn expect_request(self: &Rc<Self>) -> PendingRequest {
        self.pending_requests.update(|pending| pending + 1);
        PendingRequest(self.clone())
    }

    /// A successor has taken over: queued, running and pending requests are finished within
    /// `drain_timeout_ms`, then all processes end.
    pub fn retire(&self, drain_timeout_ms: u64) {
        if self.is_gone() {
            return;
        }
        self.phase.set(Phase::Retiring);
        self.use_reserve(&mut self.members.borrow_mut());
        self.manager.borrow_mut().retire_deadline_ms = Some(now_ms() + drain_timeout_ms);
        self.continue_retiring();
        self.demand.set();
    }

    /// Whether a successor has taken over. The pool must not be given new work then.
    pub fn is_retired(&self) -> bool {
        matches!(self.phase.get(), Phase::Retiring | Phase::Gone)
    }

    /// Whether no process is left.
    pub fn is_gone(&self) -> bool {
        self.phase.get() == Phase::Gone
    }

    /// Whether a retiring pool has to serve pending requests.
    pub(super) fn expects_requests(&self) -> bool {
        self.pending_requests.get() > 0 && !self.is_past_drain_timeout()
    }

    fn is_past_drain_timeout(&self) -> bool {
        self.manager.borrow().retire_deadline_ms.is_some_and(|at_ms| at_ms <= now_ms())
    }

    /// Whether a worker of a retiring pool is not needed: the queue is empty, and another worker has
    /// room for pending requests.
    pub(super) fn may_retire(&self, members: &Members, slot: usize) -> bool {
        let is_other = |other: &usize| *other != slot;
        members.queue.is_empty()
            && (!self.expects_requests() || members.with_room.iter().any(is_other))
    }

    /// Drains workers that a retiring pool does not need, and forks one if all have exited, or it had
    /// only borrowed ones, and one is needed.
    pub(super) fn continue_retiring(&self) {
        if self.phase.get() != Phase::Retiring {
            return;
        }
        if self.is_past_drain_timeout() {
            self.fail_queue(Reason::Draining);
        }
        let mut members = self.members.borrow_mut();
        for slot in members.with_room.clone() {
            self.assign_next(&mut members, slot);
        }
        let is_expected = self.expects_requests() || !members.queue.is_empty();
        let needs_worker = is_expected && members.all().next().is_none();
        drop(members);
        let may_fork = !self.is_starting() && self.manager.borrow().may_fork(now_ms());
        if needs_worker && may_fork {
            self.fork();
        }
    }
}
