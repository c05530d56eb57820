//! [`LentWorkers`]: the workers of this thread's zygote that other threads have.
//!
//! The owner of a worker learns of its exit by its zygote; the borrower has its requests. Invariant: the
//! owner knows where a worker is before it arrives there, so a report that misses a worker on its way follows
//! it by way of its owner.

use std::collections::HashMap;

/// A worker of this zygote that another thread has.
#[derive(Debug, Clone, Copy)]
struct LentWorker {
    /// The thread that has it.
    borrower: usize,
    /// When that had it killed.
    killed_ms: Option<u64>,
}

/// See the module. By number.
#[derive(Debug, Default)]
pub(in crate::pool) struct LentWorkers(HashMap<u64, LentWorker>);

impl LentWorkers {
    pub(in crate::pool) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::pool) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A worker goes to another thread.
    pub(in crate::pool) fn lend(&mut self, number: u64, borrower: usize) {
        let earlier = self.0.insert(number, LentWorker { borrower, killed_ms: None });
        debug_assert!(earlier.is_none(), "the worker {number} is lent already");
    }

    /// A borrower has passed a worker on to another one.
    pub(in crate::pool) fn moved(&mut self, number: u64, borrower: usize) {
        if let Some(lent) = self.0.get_mut(&number) {
            lent.borrower = borrower;
        }
    }

    /// A worker is back, or does not exist any more; false if it was not lent.
    pub(in crate::pool) fn end(&mut self, number: u64) -> bool {
        self.0.remove(&number).is_some()
    }

    /// The thread that has a worker.
    pub(in crate::pool) fn borrower_of(&self, number: u64) -> Option<usize> {
        self.0.get(&number).map(|lent| lent.borrower)
    }

    pub(in crate::pool) fn numbers(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }

    /// A worker was killed by its borrower; false if it was not lent.
    pub(in crate::pool) fn killed(&mut self, number: u64, now_ms: u64) -> bool {
        let lent = self.0.get_mut(&number);
        lent.map(|lent| lent.killed_ms.get_or_insert(now_ms)).is_some()
    }

    /// When those were killed whose exits are not reported yet.
    pub(in crate::pool) fn kills_ms(&self) -> impl Iterator<Item = u64> {
        self.0.values().filter_map(|lent| lent.killed_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_follows_a_worker_until_it_ends() {
        let mut lent = LentWorkers::default();
        lent.moved(1, 3);
        assert_eq!(lent.borrower_of(1), None, "it was not lent");
        lent.lend(1, 2);
        lent.moved(1, 3);
        assert_eq!((lent.borrower_of(1), lent.len()), (Some(3), 1));
        assert!(lent.end(1) && !lent.end(1) && lent.is_empty());
    }

    #[test]
    fn a_worker_is_killed_once() {
        let mut lent = LentWorkers::default();
        assert!(!lent.killed(1, 5));
        lent.lend(1, 2);
        assert_eq!(lent.kills_ms().count(), 0);
        assert!(lent.killed(1, 5) && lent.killed(1, 9));
        assert_eq!(lent.kills_ms().collect::<Vec<_>>(), [5]);
    }
}
