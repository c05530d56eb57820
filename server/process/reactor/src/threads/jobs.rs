//! [`Jobs`]: work that waits for a thread, by its owner.
//!
//! Called by [`super::Threads`] under its lock. Invariants: no owner has more jobs in work than its share;
//! among those with room the first to arrive begins first; a job whose owner has room may begin. Many jobs whose
//! requesters are gone do not stay.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Weak;

/// With more waiting work than this, work whose requester is gone is removed from time to time.
pub(super) const SCAN_AT_LEAST: usize = 256;

/// See the module.
pub(super) struct Jobs {
    most_per_owner: usize,
    owners: BTreeMap<u64, OwnersJobs>,
    /// An owner for each job that may begin.
    startable: VecDeque<u64>,
}

#[derive(Default)]
struct OwnersJobs {
    waiting: VecDeque<Job>,
    running: usize,
    /// How often the owner is in `startable`.
    startable: usize,
    /// The number of waiting jobs at which those without a requester are removed.
    scan_at: usize,
}

/// Work for a thread.
pub(super) struct Job {
    /// Held by the requester, until it is gone.
    pub(super) requester: Weak<()>,
    pub(super) run: Box<dyn FnOnce() + Send>,
}

impl Jobs {
    pub(super) const fn new(most_per_owner: usize) -> Self {
        Self { most_per_owner, owners: BTreeMap::new(), startable: VecDeque::new() }
    }

    pub(super) fn add(&mut self, owner: u64, job: Job) {
        let of_owner = self.owners.entry(owner).or_default();
        of_owner.remove_unwanted();
        of_owner.waiting.push_back(job);
        if of_owner.running + of_owner.startable < self.most_per_owner {
            of_owner.startable += 1;
            self.startable.push_back(owner);
        }
        self.check(owner);
    }

    /// The next job, of an owner that has room for it.
    pub(super) fn take(&mut self) -> Option<(u64, Job)> {
        while let Some(owner) = self.startable.pop_front() {
            let Some(of_owner) = self.owners.get_mut(&owner) else { continue };
            of_owner.startable -= 1;
            if let Some(job) = of_owner.waiting.pop_front() {
                of_owner.running += 1;
                self.check(owner);
                return Some((owner, job));
            }
            self.remove_if_done(owner);
        }
        None
    }

    /// A job of this owner is done.
    pub(super) fn finished(&mut self, owner: u64) {
        let Some(of_owner) = self.owners.get_mut(&owner) else { return };
        of_owner.running -= 1;
        if of_owner.waiting.len() > of_owner.startable {
            of_owner.startable += 1;
            self.startable.push_back(owner);
        }
        self.check(owner);
        self.remove_if_done(owner);
    }

    /// The invariants, as far as they concern one owner.
    fn check(&self, owner: u64) {
        if !cfg!(debug_assertions) {
            return;
        }
        let Some(OwnersJobs { waiting, running, startable, .. }) = self.owners.get(&owner) else {
            return;
        };
        debug_assert!(running + startable <= self.most_per_owner, "it has more than its share");
        debug_assert!(
            *startable >= waiting.len().min(self.most_per_owner - running),
            "a job would wait although there is room"
        );
        debug_assert_eq!(*startable, self.startable.iter().filter(|one| **one == owner).count());
    }

    /// The number of jobs that may begin.
    pub(super) fn startable(&self) -> usize {
        self.startable.len()
    }

    /// The number of jobs that have not begun.
    pub(super) fn waiting(&self) -> usize {
        self.owners.values().map(|of_owner| of_owner.waiting.len()).sum()
    }

    /// The number of jobs in work.
    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        self.owners.values().map(|of_owner| of_owner.running).sum()
    }

    fn remove_if_done(&mut self, owner: u64) {
        let of_owner = self.owners.get(&owner);
        if of_owner.is_some_and(|of_owner| of_owner.running + of_owner.startable == 0) {
            self.owners.remove(&owner);
        }
    }
}

impl OwnersJobs {
    /// Clients that come and go must not fill the memory while a disk hangs.
    fn remove_unwanted(&mut self) {
        if self.waiting.len() < self.scan_at.max(SCAN_AT_LEAST) {
            return;
        }
        self.waiting.retain(|job| job.requester.strong_count() > 0);
        self.scan_at = 2 * self.waiting.len();
    }
}

impl Job {
    /// Does the work, unless its requester is gone.
    pub(super) fn run_if_wanted(self) {
        if self.requester.strong_count() > 0 {
            (self.run)();
        }
    }
}
