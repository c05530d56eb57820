//! Workers whose script stays are replaced by a successor that is ready before they leave: its
//! boot may take long, and the others should not carry the load meanwhile.
//!
//! Asked when a worker is due, carried out after each look and at ticks. Invariant: only a part of
//! the pool is being succeeded at a time.

use super::members::Members;
use super::worker::Worker;
use super::{Phase, Pool};
use outboard_reactor::now_ms;
use outboard_supervisor::plan::recycle;
use outboard_supervisor::worker::lifecycle::State;

/// A worker that is due and the one that takes its place, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) old: u64,
    /// `None` until it was ordered.
    pub(super) new: Option<u64>,
}

impl Pool {
    /// Whether a worker that is due may leave: its successor is ready, or it needs none.
    pub(super) fn has_successor(&self, members: &Members, due: &Worker) -> bool {
        if !self.settings.is_resident() || self.settings.forks_per_request() {
            return true;
        }
        let mut replacements = self.replacements.borrow_mut();
        let old = due.process.number;
        if let Some(replacement) = replacements.iter().find(|replacement| replacement.old == old) {
            return replacement.new.is_some_and(|new| is_ready(members, new));
        }
        let may_start = self.manager.borrow().may_fork(now_ms());
        if may_start && replacements.len() < recycle::max_unavailable(members.all().count()) {
            replacements.push(Replacement { old, new: None });
        }
        false
    }

    /// Workers that are there beside the pool's number of workers.
    pub(super) fn successors(&self) -> usize {
        self.replacements.borrow().len()
    }

    /// Orders the successors that are wanted, and forgets replacements that are over.
    pub(super) fn order_successors(&self) {
        if self.replacements.borrow().is_empty() || self.phase.get() != Phase::Serving {
            return;
        }
        let mut replacements = self.replacements.take();
        {
            let members = self.members.borrow();
            let is_there = |number| members.all().any(|worker| worker.process.number == number);
            let stays = |number| {
                members.all().any(|worker| {
                    worker.process.number == number && worker.state() < State::Draining
                })
            };
            // A successor that died while it started is not ordered again before it is asked for.
            replacements.retain(|one| stays(one.old) && one.new.is_none_or(is_there));
        }
        for replacement in replacements.iter_mut().filter(|one| one.new.is_none()) {
            replacement.new = self.fork();
        }
        replacements.retain(|one| one.new.is_some());
        self.replacements.replace(replacements);
    }
}

fn is_ready(members: &Members, number: u64) -> bool {
    members.all().any(|worker| {
        worker.process.number == number && matches!(worker.state(), State::Idle | State::Busy)
    })
}
