//! [`Members`]: the workers of a pool, the queue in front of them, and which of its workers other threads have.
//!
//! These three change together: a request leaves the queue for a worker, a worker leaves the roster for another
//! thread. One `RefCell` of [`PoolCore`](super::core::PoolCore) has them. Invariants: who borrows that calls only
//! what takes the borrowed members as a parameter, and what takes them borrows nothing of it itself; no borrow
//! lives across an await (by its type: the `RefCell` refuses a second borrow).

use super::lending::lent::LentWorkers;
use super::queue::Queue;
use super::roster::Roster;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) roster: Roster,
    pub(super) queue: Queue,
    /// Workers of this zygote that other threads have.
    pub(super) lent: LentWorkers,
}

impl Members {
    /// The number of workers of this zygote that are not draining or dying, wherever they are, without one in
    /// reserve.
    pub(super) fn active(&self) -> usize {
        self.roster.active_own() + self.lent.len()
    }

    /// Whether there is no request and no worker.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.roster.all().next().is_none() && self.lent.is_empty()
    }
}
