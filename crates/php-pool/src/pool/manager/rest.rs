//! When the manager ticks next: often while there is work, and not at all without.
//!
//! Called by the manager before it sleeps, and by the pool when a resting manager is needed.
//! Invariant: whatever needs a tick is visible before the manager rests, or wakes it.

use super::super::loans::LOAN_IDLE_MS;
use super::super::worker::Worker;
use super::super::{Phase, Pool};
use outboard_supervisor::plan::deadline::Stage;
use outboard_supervisor::plan::scale::{Decision, Reason};
use outboard_supervisor::worker::lifecycle::State;

/// The interval of ticks while requests come or wait, or processes start or end.
const BUSY_TICK_MS: u64 = 20;
/// The interval until nothing has happened for one.
const IDLE_TICK_MS: u64 = 100;
/// The interval while requests run and none come.
const RUNNING_TICK_MS: u64 = 5_000;
/// The interval for workers whose memory is limited: a resident worker may grow without a request.
const MEMORY_TICK_MS: u64 = 10_000;

impl Pool {
    /// When the next tick is due, after `now_ms`; `u64::MAX` if only an event makes one necessary.
    pub(in crate::pool) fn next_tick_ms(&self, now_ms: u64) -> u64 {
        let (is_changing, is_running, deadline_ms) = {
            let members = self.members.borrow();
            let is_changing = !members.queue.is_empty()
                || members.all().any(is_changing)
                || members.lent.values().any(|loan| loan.killed_ms.is_some());
            let is_running = members.all().any(|worker| worker.state() == State::Busy);
            let leases = members.all().flat_map(|worker| worker.leases.iter());
            let deadlines = leases.filter_map(|lease| {
                let deadline_ms = lease.timing?.deadline_ms;
                Some(self.slow_at_ms(lease).map_or(deadline_ms, |at_ms| at_ms.min(deadline_ms)))
            });
            // The steps after a deadline follow in busy ticks.
            let next = deadlines.filter(|at_ms| *at_ms > now_ms).min();
            (is_changing, is_running, next.unwrap_or(u64::MAX))
        };
        let requests = self.counters.borrow().requests;
        let comes = {
            let mut manager = self.manager.borrow_mut();
            manager.is_slow = !is_changing;
            std::mem::replace(&mut manager.requests_at_tick, requests) != requests
        };
        let is_settled = !is_changing && !comes && self.is_settled();
        self.is_resting.set(is_settled);
        let interval_ms = match is_running {
            _ if is_changing => BUSY_TICK_MS,
            true if comes => BUSY_TICK_MS,
            _ if !is_settled => IDLE_TICK_MS,
            true => RUNNING_TICK_MS,
            false if self.has_memory_limit() => MEMORY_TICK_MS,
            false => return self.next_idle_timeout_ms(now_ms),
        };
        deadline_ms.min(now_ms + interval_ms).min(self.next_idle_timeout_ms(now_ms))
    }

    fn has_memory_limit(&self) -> bool {
        self.settings.is_resident() && self.settings.recycle_memory_bytes.is_some()
    }

    /// Whether ticks change nothing before the next event.
    fn is_settled(&self) -> bool {
        self.phase.get() == Phase::Serving
            && self.replacements.borrow().is_empty()
            && self.manager.borrow().sizing.decision == Some(Decision::Hold(Reason::Enough))
            && !self.has_dropped_lines()
            && !self.placement.is_active()
    }

    /// When a worker beyond the minimum has been idle for long; `u64::MAX` for never.
    fn next_idle_timeout_ms(&self, now_ms: u64) -> u64 {
        let (members, manager) = (self.members.borrow(), self.manager.borrow());
        if members.all().any(|worker| !worker.is_own && worker.state() == State::Idle) {
            return now_ms + LOAN_IDLE_MS;
        }
        if members.active() <= manager.sizing.bounds.min() {
            return u64::MAX;
        }
        let timeout_ms = self.settings.idle_timeout_ms;
        let idle = members.all().filter_map(|worker| worker.process.lifecycle.idle_ms(now_ms));
        let left = idle.filter_map(|idle_ms| timeout_ms.checked_sub(idle_ms)).filter(|ms| *ms > 0);
        left.min().map_or(u64::MAX, |left_ms| now_ms + left_ms)
    }

    /// Has a resting manager tick: a request was assigned, a worker is killed or lines are dropped.
    pub(in crate::pool) fn end_rest(&self) {
        if self.is_resting.take() {
            self.demand.set();
        }
    }
}

/// Whether a worker starts, ends, has a backlog or a request past its deadline.
fn is_changing(worker: &Worker) -> bool {
    !matches!(worker.state(), State::Idle | State::Busy)
        || worker.backlog_len() > 0
        || worker.leases.iter().any(|lease| lease.stage != Stage::InTime)
}
