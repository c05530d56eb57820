//! A worker in reserve: booted and idle beyond the greatest number of workers, so that one that dies has a successor
//! at once. To fork one takes some milliseconds, in which a pool whose workers are all busy answers nobody.
//!
//! Kept by the manager of a pool that rewinds its workers and has as many as it may; a fork of its snapshot is small.
//! Invariants: a worker in reserve gets no request; an app has one at most; it counts as no worker.

use super::members::Members;
use super::worker::Worker;
use super::{Phase, Pool};
use outboard_reactor::now_ms;
use outboard_supervisor::worker::lifecycle::State;

impl Pool {
    /// Forks a worker in reserve if the pool has as many workers as it may. With fewer it is an ordinary one.
    pub(super) fn keep_reserve(&self) {
        if self.manager.borrow().rewind.is_none() || self.phase.get() != Phase::Serving {
            return;
        }
        let mut members = self.members.borrow_mut();
        self.use_reserve(&mut members);
        let is_wanted = members.reserve().is_none() && !self.has_vacancy(&members);
        drop(members);
        // Those of other threads can be lent.
        let may_fork = self.shard.is_lead() && self.manager.borrow().may_fork(now_ms());
        if is_wanted
            && may_fork
            && let Some(number) = self.fork()
        {
            self.with_worker(number, |worker| worker.is_reserve = true);
        }
    }

    /// Makes the worker in reserve an ordinary one if another one is gone, or leaves.
    pub(super) fn use_reserve(&self, members: &mut Members) {
        let Some(slot) = members.reserve() else { return };
        let is_needed = self.phase.get() != Phase::Serving || self.has_vacancy(members);
        if is_needed && let Some(worker) = members.workers[slot].as_mut() {
            worker.is_reserve = false;
            self.assign_next(members, slot);
        }
    }

    /// Ends the worker in reserve: the pool becomes smaller, and this one would take the place of one that goes.
    pub(super) fn drain_reserve(&self, members: &mut Members) {
        if let Some(slot) = members.reserve() {
            self.drain_slot(members, slot);
        }
    }

    /// Whether the pool may have another worker.
    fn has_vacancy(&self, members: &Members) -> bool {
        members.active() < self.manager.borrow().sizing.bounds.max()
    }
}

impl Members {
    /// The slot of the worker in reserve.
    fn reserve(&self) -> Option<usize> {
        let is_it = |worker: &Worker| worker.is_reserve && worker.state() < State::Draining;
        self.workers.iter().position(|worker| worker.as_ref().is_some_and(is_it))
    }
}
