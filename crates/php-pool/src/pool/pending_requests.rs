//! Requests that may still come to a pool: their bodies are being received, or their pages made.
//!
//! Taken by the turn of each request that may need PHP. Invariant: a pool that retires has a worker
//! with room for them until the last is over or its time is up.

use super::members::Members;
use super::{Phase, Pool};
use outboard_log::Reason;
use outboard_reactor::now_ms;
use std::rc::Rc;

/// Somebody who may still submit a request.
#[derive(Debug)]
pub struct PendingRequest(Rc<Pool>);

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let pool = &self.0;
        pool.pending_requests.set(pool.pending_requests.get() - 1);
        if pool.pending_requests.get() == 0 && pool.phase.get() == Phase::Retiring {
            pool.demand.set();
        }
    }
}

impl Pool {
    /// Announces a request.
    pub fn claim(self: &Rc<Self>) -> PendingRequest {
        self.pending_requests.set(self.pending_requests.get() + 1);
        PendingRequest(self.clone())
    }

    /// Whether a pool that retires has to serve what may still come.
    pub(super) fn is_claimed(&self) -> bool {
        self.pending_requests.get() > 0 && !self.is_late()
    }

    fn is_late(&self) -> bool {
        self.manager.borrow().retire_deadline_ms.is_some_and(|at_ms| at_ms <= now_ms())
    }

    /// Whether a worker may leave a pool that retires: nobody waits, and another is there for those
    /// who may still come.
    pub(super) fn may_retire(&self, members: &Members, slot: usize) -> bool {
        let is_other = |other: usize| other != slot;
        members.queue.is_empty()
            && (!self.is_claimed() || members.with_room().into_iter().any(is_other))
    }

    /// Sees workers off that a pool which retires needs no more, and makes one when all have gone
    /// that it needs.
    pub(super) fn go_on_retiring(&self) {
        if self.phase.get() != Phase::Retiring {
            return;
        }
        if self.is_late() {
            self.fail_queue(Reason::Draining);
        }
        let mut members = self.members.borrow_mut();
        for slot in members.with_room() {
            self.give_work(&mut members, slot);
        }
        let is_missed = self.is_claimed() && members.staying() == 0;
        drop(members);
        let can_fork = {
            let manager = self.manager.borrow();
            manager.started_by_ms.is_none() && manager.may_fork(now_ms())
        };
        if is_missed && can_fork {
            self.fork();
        }
    }
}
