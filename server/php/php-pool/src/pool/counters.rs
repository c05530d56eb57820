//! [`Counters`]: what a pool has done, for `outboard status` and the metrics.
//!
//! Owned by the pool. Invariant: what workers of an earlier pool of the same app have done is added once (by its
//! type: counts cannot be copied).

use super::worker::Worker;
use outboard_ring::channel::{Rewinds, WaitCall, Waits};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: u64,
    pub(super) direct: u64,
    pub(super) adopted: u64,
    pub(super) queued: u64,
    pub(super) rejected: u64,
    pub(super) crashes: u64,
    pub(super) deadlines: u64,
    pub(super) recycled: u64,
    pub(super) forks: u64,
    /// Waits of workers that have exited, by [`WaitCall`].
    pub(super) waits: [Waits; WaitCall::ALL.len()],
    /// Rewinds of workers that have exited.
    pub(super) rewinds: Rewinds,
    /// How many workers have become ready, and how long that took from the order to fork, in µs.
    pub(super) starts: u64,
    pub(super) start_us: u64,
}

impl Counters {
    /// Goes on counting where an earlier pool has ended.
    pub(super) fn continue_from(&mut self, earlier: Self) {
        self.requests += earlier.requests;
        self.direct += earlier.direct;
        self.adopted += earlier.adopted;
        self.queued += earlier.queued;
        self.rejected += earlier.rejected;
        self.crashes += earlier.crashes;
        self.deadlines += earlier.deadlines;
        self.recycled += earlier.recycled;
        self.forks += earlier.forks;
        for (sum, more) in self.waits.iter_mut().zip(earlier.waits) {
            add_waits(sum, more);
        }
    }

    /// Adds the last counts of a worker that has exited.
    pub(super) fn add_exited(&mut self, worker: &Worker) {
        for call in WaitCall::ALL {
            add_waits(&mut self.waits[call as usize], worker.process.channel.waits(call));
        }
        self.rewinds.add(worker.process.channel.rewinds());
        self.starts += u64::from(worker.start_us().is_some());
        self.start_us += worker.start_us().unwrap_or(0);
    }

    /// The mean time from the order to fork a worker until it was ready, of those that have exited and those
    /// that run.
    pub(super) fn mean_start_us<'a>(&self, running: impl Iterator<Item = &'a Worker>) -> u64 {
        let (mut starts, mut us) = (self.starts, self.start_us);
        for running_us in running.filter_map(Worker::start_us) {
            starts += 1;
            us += running_us;
        }
        us / starts.max(1)
    }
}

/// Adds to a sum of waits. The numbers come from workers, and may be any.
pub(super) fn add_waits(sum: &mut Waits, more: Waits) {
    sum.suspended = sum.suspended.saturating_add(more.suspended);
    sum.blocked = sum.blocked.saturating_add(more.blocked);
    sum.blocked_us = sum.blocked_us.saturating_add(more.blocked_us);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_pool_is_counted_and_sums_do_not_overflow() {
        let wait = |count| Waits { suspended: count, blocked: count, blocked_us: count };
        let mut counters = Counters { requests: 2, ..Counters::default() };
        counters.waits[0] = wait(u64::MAX - 1);
        let mut earlier = Counters { requests: 3, crashes: 1, ..Counters::default() };
        earlier.waits[0] = wait(7);
        counters.continue_from(earlier);
        assert_eq!((counters.requests, counters.crashes), (5, 1));
        assert_eq!(counters.waits[0].blocked, u64::MAX);
    }
}
