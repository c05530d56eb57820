//! [`Replacements`]: workers that have to be replaced, and their successors.
//!
//! Owned by the dispatcher. A worker with a worker script is drained only once its successor is ready: the boot of
//! the script may take long, and the other workers should not bear the load meanwhile. Invariant: only a part of
//! the pool is replaced at a time.

use super::roster::Roster;
use outboard_supervisor::plan::recycle;
use outboard_supervisor::worker::lifecycle::State;
use std::cell::RefCell;

/// A worker that has to be replaced and its successor, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Replacement {
    old: u64,
    /// `None` until it is ordered.
    new: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    pairs: RefCell<Vec<Replacement>>,
}

impl Replacements {
    /// Workers in addition to the size of the pool.
    pub(super) fn len(&self) -> usize {
        self.pairs.borrow().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.borrow().is_empty()
    }

    /// Whether a worker is about to be replaced.
    pub(super) fn is_replaced(&self, number: u64) -> bool {
        self.pairs.borrow().iter().any(|pair| pair.old == number)
    }

    /// Whether a worker is about to be replaced, or replaces another.
    pub(super) fn concerns(&self, number: u64) -> bool {
        self.pairs.borrow().iter().any(|pair| pair.old == number || pair.new == Some(number))
    }

    /// Whether the successor of a worker is ready. If it has none one is wanted, unless too many are or nothing
    /// may be forked.
    pub(super) fn has_successor(
        &self,
        roster: &Roster,
        old: u64,
        may_fork: impl FnOnce() -> bool,
    ) -> bool {
        let mut pairs = self.pairs.borrow_mut();
        if let Some(pair) = pairs.iter().find(|pair| pair.old == old) {
            return pair.new.is_some_and(|new| roster.is_ready(new));
        }
        if may_fork() && pairs.len() < recycle::max_unavailable(roster.all().count()) {
            pairs.push(Replacement { old, new: None });
        }
        false
    }

    /// Removes replacements that are complete. If a successor dies while it starts, the next check of its worker
    /// begins again.
    pub(super) fn remove_complete(&self, roster: &Roster) {
        let exists = |number| roster.slot_of(number).is_some();
        let is_active = |number| {
            roster
                .all()
                .any(|worker| worker.process.number == number && worker.state() < State::Draining)
        };
        let mut pairs = self.pairs.borrow_mut();
        pairs.retain(|pair| is_active(pair.old) && pair.new.is_none_or(exists));
    }

    /// Has missing successors forked; those for which that fails are wanted again at the next check.
    pub(super) fn fork_missing(&self, mut fork: impl FnMut() -> Option<u64>) {
        let mut pairs = self.pairs.take();
        for pair in pairs.iter_mut().filter(|pair| pair.new.is_none()) {
            pair.new = fork();
        }
        pairs.retain(|pair| pair.new.is_some());
        let meanwhile = self.pairs.replace(pairs);
        debug_assert!(meanwhile.is_empty(), "replacements are lost: {meanwhile:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::roster::tests::roster;
    use super::*;
    use outboard_supervisor::worker::lifecycle::Transition;

    #[test]
    fn a_worker_leaves_once_its_successor_is_ready() {
        outboard_reactor::run(async {
            let (replacements, mut present) = (Replacements::default(), roster(&[2, 3]));
            assert!(!replacements.has_successor(&present, 2, || false) && replacements.is_empty());
            assert!(!replacements.has_successor(&present, 2, || true));
            replacements.fork_missing(|| None);
            assert!(replacements.is_empty(), "it is wanted again at the next check");
            replacements.has_successor(&present, 2, || true);
            replacements.fork_missing(|| Some(3));
            assert!(replacements.is_replaced(2) && !replacements.is_replaced(3));
            assert!(replacements.concerns(3) && replacements.len() == 1);
            assert!(!replacements.has_successor(&present, 2, || true), "it starts");
            let ready = present.with_number(3).unwrap().process.lifecycle.ready(0);
            assert_eq!(ready, Transition::Applied);
            assert!(replacements.has_successor(&present, 2, || true));
            replacements.remove_complete(&present);
            assert_eq!(replacements.len(), 1);
            present.remove(0);
            replacements.remove_complete(&present);
            assert!(replacements.is_empty());
        })
        .unwrap();
    }
}
