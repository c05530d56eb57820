//! Which workers leave a pool: those that have to be recycled, those that are too many, and all of a pool that retires.
//!
//! A part of the [`Dispatcher`]. Invariants: a worker with a worker script leaves only once its successor is ready, and
//! only a part of the pool at a time; a retiring pool has a worker with room for pending requests; an app has one
//! worker in reserve at most.

use super::dispatch::Dispatcher;
use super::members::Members;
use super::worker::Worker;
use outboard_log::{Level, Reason};
use outboard_reactor::now_ms;
use outboard_supervisor::plan::recycle;
use outboard_supervisor::worker::lifecycle::State;

impl Dispatcher {
    /// Whether an idle worker has to be recycled, or a retiring pool does not need it.
    pub(super) fn should_drain(&self, members: &Members, slot: usize) -> bool {
        let core = &self.core;
        if core.lifecycle.is_retiring() && self.may_retire(members, slot) {
            return true;
        }
        let Some(worker) = members.roster.get(slot) else { return false };
        if !worker.is_own {
            return false;
        }
        let Some(reason) = self.sizing.borrow().recycle_reason(worker) else { return false };
        if !self.has_successor(members, worker) {
            return false;
        }
        let all = members.roster.all();
        let unavailable = all.clone().filter(|worker| !worker.is_ready()).count();
        if unavailable >= recycle::max_unavailable(all.count()) {
            return false;
        }
        core.counters.borrow_mut().recycled += 1;
        core.log.log_worker(worker, Level::Debug, &format!("a worker is replaced: {reason}"));
        true
    }

    /// Whether a worker may be replaced: its successor is ready, or it needs none. Otherwise a
    /// replacement is begun.
    fn has_successor(&self, members: &Members, worker: &Worker) -> bool {
        let settings = &self.core.settings;
        if !settings.is_resident() {
            return true;
        }
        let may_fork = || self.core.php.borrow().may_fork(now_ms());
        self.replacements.has_successor(&members.roster, worker.process.number, may_fork)
    }

    /// Whether a worker of a retiring pool is not needed: the queue is empty, and another worker has
    /// room for pending requests.
    fn may_retire(&self, members: &Members, slot: usize) -> bool {
        let is_other = |other: &usize| *other != slot;
        members.queue.is_empty()
            && (!self.core.lifecycle.expects_requests()
                || members.roster.with_room().iter().any(is_other))
    }

    /// Drains workers that a retiring pool does not need. Returns whether it needs one: all have exited, or it had
    /// only borrowed ones.
    pub(super) fn continue_retiring(&self) -> bool {
        let core = &self.core;
        if !core.lifecycle.is_retiring() {
            return false;
        }
        if core.lifecycle.is_past_drain_timeout() {
            core.fail_queue(Reason::Draining);
        }
        let mut members = core.members.borrow_mut();
        for slot in members.roster.with_room().to_vec() {
            self.assign_next(&mut members, slot);
        }
        let is_expected = core.lifecycle.expects_requests() || !members.queue.is_empty();
        is_expected && members.roster.all().next().is_none()
    }

    /// Drains idle workers that have to be replaced.
    pub(super) fn recycle_idle(&self) {
        let mut members = self.core.members.borrow_mut();
        for slot in members.roster.idle() {
            if self.should_drain(&members, slot) {
                self.core.drain_slot(&mut members, slot);
            }
        }
    }

    /// Drains the workers that have been idle longest, and that in reserve: it would take the place of one that
    /// goes.
    pub(super) fn shrink(&self, count: usize) {
        let mut members = self.core.members.borrow_mut();
        if let Some(slot) = members.roster.reserve() {
            self.core.drain_slot(&mut members, slot);
        }
        let is_own = |slot: &usize| members.roster.get(*slot).is_some_and(|worker| worker.is_own);
        let idle = members.roster.idle().into_iter().filter(is_own);
        for slot in idle.take(count).collect::<Vec<_>>() {
            self.core.drain_slot(&mut members, slot);
        }
    }

    /// Whether a worker in reserve is to be forked: the pool has as many workers as it may. With fewer that in
    /// reserve becomes an ordinary one.
    pub(super) fn needs_reserve(&self) -> bool {
        let mut members = self.core.members.borrow_mut();
        self.use_reserve(&mut members);
        members.roster.reserve().is_none() && !self.has_vacancy(&members)
    }

    /// Makes the worker in reserve an ordinary one if another one is gone, or leaves.
    pub(super) fn use_reserve(&self, members: &mut Members) {
        let Some(slot) = members.roster.reserve() else { return };
        let is_reserve = |worker: &&Worker| worker.is_reserve && worker.state() < State::Draining;
        debug_assert_eq!(members.roster.all().filter(is_reserve).count(), 1, "workers in reserve");
        let is_needed = !self.core.lifecycle.is_serving() || self.has_vacancy(members);
        if is_needed && let Some(worker) = members.roster.get_mut(slot) {
            worker.is_reserve = false;
            self.assign_next(members, slot);
        }
    }

    /// Whether the pool may have another worker.
    fn has_vacancy(&self, members: &Members) -> bool {
        members.active() < self.sizing.borrow().bounds.max()
    }
}
