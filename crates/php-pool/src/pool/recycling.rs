//! Workers that are recycled, drained or killed.
//!
//! Called by the dispatcher and the manager. A worker with a worker script is drained only once its
//! successor is ready: the boot of the script may take long, and the other workers should not bear the
//! load meanwhile. Invariant: only a part of the pool is replaced at a time.

use super::members::Members;
use super::messages::Message;
use super::worker::Worker;
use super::{Phase, Pool};
use outboard_log::{Level, Reason};
use outboard_reactor::now_ms;
use outboard_ring::spsc::Corrupt;
use outboard_supervisor::plan::recycle;
use outboard_supervisor::worker::lifecycle::{LEAVING_GRACE_MS, State, Transition};

/// Fixed by Linux on every architecture.
pub(super) const SIGKILL: i32 = 9;

/// A worker that has to be replaced and its successor, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) old: u64,
    /// `None` until it is ordered.
    pub(super) new: Option<u64>,
}

impl Pool {
    /// Whether an idle worker has to be recycled, or a retiring pool does not need it.
    pub(super) fn should_drain(&self, members: &Members, slot: usize) -> bool {
        if self.phase.get() == Phase::Retiring && self.may_retire(members, slot) {
            return true;
        }
        let Some(worker) = members.workers[slot].as_ref() else { return false };
        if !worker.is_own {
            return false;
        }
        let Some(reason) = self.manager.borrow().sizing.recycle_reason(worker) else {
            return false;
        };
        if !self.has_successor(members, worker) {
            return false;
        }
        let all = members.all();
        let is_unavailable =
            |worker: &&Worker| !matches!(worker.state(), State::Idle | State::Busy);
        if all.clone().filter(is_unavailable).count() >= recycle::max_unavailable(all.count()) {
            return false;
        }
        self.counters.borrow_mut().recycled += 1;
        self.log_worker(worker, Level::Debug, &format!("a worker is replaced: {reason}"));
        true
    }

    /// Drains the worker of a slot: it exits once its requests are finished.
    pub(super) fn drain_slot(&self, members: &mut Members, slot: usize) {
        if let Some(worker) = members.workers[slot].as_mut() {
            worker.activate();
            let longest_ms = if worker.in_flight() > 0 { self.settings.deadline_ms } else { 0 };
            let until_ms = now_ms().saturating_add(longest_ms).saturating_add(LEAVING_GRACE_MS);
            if worker.process.drain(until_ms).is_err() {
                self.kill(worker);
            }
        }
        members.update_room_list(slot);
    }

    /// Kills a worker that has broken the protocol. Its requests fail or are given to others when its
    /// exit is reported.
    pub(super) fn kill_for_protocol_error(&self, worker: &mut Worker, corrupt: Corrupt) {
        self.log_failure(worker, Reason::WorkerProtocolError, &corrupt.to_string());
        worker.is_broken = true;
        self.kill(worker);
    }

    pub(super) fn kill(&self, worker: &mut Worker) {
        if worker.process.lifecycle.kill() == Transition::Applied {
            worker.killed_ms = Some(now_ms());
            worker.activate();
            self.end_rest();
            self.signal(worker.process.number, SIGKILL);
        }
    }

    pub(super) fn signal(&self, worker: u64, signal: i32) {
        if !self.shard.is_home_of(worker) {
            let home = self.shard.home_of(worker);
            return self.shard.send(home, Message::Signal { number: worker, signal });
        }
        if let Some(zygote) = self.zygote.borrow().as_ref()
            && let Err(error) = zygote.signal(worker, signal)
        {
            self.error_log.note(Level::Error, &format!("cannot signal a worker: {error}"));
        }
    }

    /// Whether a worker may be replaced: its successor is ready, or it needs none. Otherwise a
    /// replacement is begun.
    pub(super) fn has_successor(&self, members: &Members, worker: &Worker) -> bool {
        if !self.settings.is_resident() || self.settings.forks_per_request() {
            return true;
        }
        let mut replacements = self.replacements.borrow_mut();
        let old = worker.process.number;
        if let Some(replacement) = replacements.iter().find(|replacement| replacement.old == old) {
            return replacement.new.is_some_and(|new| is_ready(members, new));
        }
        let may_start = self.manager.borrow().may_fork(now_ms());
        if may_start && replacements.len() < recycle::max_unavailable(members.all().count()) {
            replacements.push(Replacement { old, new: None });
        }
        false
    }

    /// Whether a worker is about to be replaced, or replaces another.
    pub(super) fn is_being_replaced(&self, worker: &Worker) -> bool {
        let number = worker.process.number;
        let is_it = |pair: &Replacement| pair.old == number || pair.new == Some(number);
        self.replacements.borrow().iter().any(is_it)
    }

    /// Workers in addition to the size of the pool.
    pub(super) fn successors(&self) -> usize {
        self.replacements.borrow().len()
    }

    /// Forks missing successors, and removes replacements that are complete.
    pub(super) fn fork_successors(&self) {
        if self.replacements.borrow().is_empty() || self.phase.get() != Phase::Serving {
            return;
        }
        let mut replacements = self.replacements.take();
        {
            let members = self.members.borrow();
            let exists = |number| members.all().any(|worker| worker.process.number == number);
            let is_active = |number| {
                members.all().any(|worker| {
                    worker.process.number == number && worker.state() < State::Draining
                })
            };
            // If a successor dies while it starts, the next check of its worker begins again.
            replacements.retain(|pair| is_active(pair.old) && pair.new.is_none_or(exists));
        }
        for pair in replacements.iter_mut().filter(|pair| pair.new.is_none()) {
            pair.new = self.fork();
        }
        replacements.retain(|pair| pair.new.is_some());
        self.replacements.replace(replacements);
    }
}

fn is_ready(members: &Members, number: u64) -> bool {
    members.all().any(|worker| {
        worker.process.number == number && matches!(worker.state(), State::Idle | State::Busy)
    })
}
