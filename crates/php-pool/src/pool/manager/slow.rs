//! Backtraces of requests that have reached the threshold of the slow log.
//!
//! Called by the manager in each tick. Invariant: a request costs its worker at most one signal here, and a
//! system call that it waits in is not interrupted: the zygote reads such a worker from outside.

use super::super::Pool;
use super::super::leases::Lease;
use outboard_ring::control::BACKTRACE_SIGNAL;
use outboard_supervisor::plan::deadline::Stage;

impl Pool {
    /// Requests a backtrace of each worker with a request that has become slow.
    pub(in crate::pool) fn request_slow_backtraces(&self, now_ms: u64) {
        let mut members = self.members.borrow_mut();
        for worker in members.workers.iter_mut().flatten() {
            let due =
                |lease: &&mut Lease| self.slow_at_ms(lease).is_some_and(|at_ms| at_ms <= now_ms);
            let found = worker.leases.iter_mut().filter(due);
            if found.map(|lease| lease.is_slow = true).count() > 0 {
                self.signal(worker.process.number, BACKTRACE_SIGNAL);
            }
        }
    }

    /// When a request becomes slow; `None` if it is already, or never will be.
    pub(super) fn slow_at_ms(&self, lease: &Lease) -> Option<u64> {
        if lease.is_slow || lease.stage != Stage::InTime {
            return None;
        }
        Some(lease.timing?.started_ms.saturating_add(self.settings.slow_ms?))
    }
}
