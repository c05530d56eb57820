//! [`Lifecycle`]: the phase of a pool, what its manager sleeps until, and the requests that may still be
//! submitted to it: their bodies are being received, or their pages composed.
//!
//! Read and changed by all parts of the pool; it calls none. A request that may need PHP holds a
//! [`PendingRequest`]. Invariants: whatever needs a tick wakes a resting manager; a retiring pool waits for
//! pending requests until the last one is finished or the drain time-out has passed.

use outboard_reactor::{Event, now_ms};
use std::cell::Cell;
use std::rc::Rc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Without requests no process is there; the next request has PHP started.
    Asleep,
    /// PHP is starting, for the first time or again.
    Starting,
    /// Requests are served.
    Serving,
    /// A successor has taken over: queued, running and pending requests are finished.
    Retiring,
    /// No process is left.
    Gone,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lifecycle {
    phase: Cell<Phase>,
    /// Set when the phase or the state of a worker has changed.
    changed: Event,
    /// Wakes the manager: a request is queued, or a worker's state has changed.
    demand: Event,
    /// Whether the manager sleeps until something wakes it.
    is_resting: Cell<bool>,
    /// Whether the manager ticks slowly and a queued request has to wake it.
    is_slow: Cell<bool>,
    /// The number of requests at the last tick.
    requests_at_tick: Cell<u64>,
    /// When the pool was last asleep.
    woken_ms: Cell<u64>,
    /// Requests that may still be submitted.
    pending_requests: Cell<usize>,
    /// Workers of a retiring pool that are still busy then are killed.
    retire_deadline_ms: Cell<Option<u64>>,
    /// Pools of other threads whose zygotes may still live: they would die with the first one.
    dependents: Cell<usize>,
}

/// A request that may still be submitted.
#[derive(Debug)]
pub struct PendingRequest(Rc<Lifecycle>);

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let pending = self.0.pending_requests.get() - 1;
        self.0.pending_requests.set(pending);
        if pending == 0 && self.0.is_retiring() {
            self.0.demand.set();
        }
    }
}

impl Lifecycle {
    /// PHP is starting. So many pools of other threads depend on this one.
    pub(super) fn new(dependents: usize) -> Rc<Self> {
        Rc::new(Self {
            phase: Cell::new(Phase::Starting),
            changed: Event::default(),
            demand: Event::default(),
            is_resting: Cell::new(false),
            is_slow: Cell::new(false),
            requests_at_tick: Cell::new(0),
            woken_ms: Cell::new(0),
            pending_requests: Cell::new(0),
            retire_deadline_ms: Cell::new(None),
            dependents: Cell::new(dependents),
        })
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// A pool that retires does not serve again.
    pub(super) fn enter(&self, phase: Phase) {
        debug_assert!(
            !self.is_retired() || matches!(phase, Phase::Retiring | Phase::Gone),
            "a retired pool becomes {phase:?}"
        );
        self.phase.set(phase);
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.phase.get() == Phase::Asleep
    }

    /// PHP is needed again.
    pub(super) fn wake(&self) {
        self.woken_ms.set(now_ms());
        if self.is_asleep() {
            self.enter(Phase::Starting);
        }
    }

    /// When it was last asleep.
    pub(super) fn woken_ms(&self) -> u64 {
        self.woken_ms.get()
    }

    pub(super) fn is_starting(&self) -> bool {
        self.phase.get() == Phase::Starting
    }

    pub(super) fn is_serving(&self) -> bool {
        self.phase.get() == Phase::Serving
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.phase.get() == Phase::Retiring
    }

    /// Whether a successor has taken over.
    pub(super) fn is_retired(&self) -> bool {
        matches!(self.phase.get(), Phase::Retiring | Phase::Gone)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.phase.get() == Phase::Gone
    }

    /// Set when the phase or the state of a worker has changed.
    pub(super) fn changed(&self) -> &Event {
        &self.changed
    }

    /// What the manager waits for between its ticks.
    pub(super) fn demand(&self) -> &Event {
        &self.demand
    }

    /// A successor has taken over.
    pub(super) fn retire(&self, deadline_ms: u64) {
        self.enter(Phase::Retiring);
        self.retire_deadline_ms.set(Some(deadline_ms));
    }

    pub(super) fn retire_deadline_ms(&self) -> Option<u64> {
        self.retire_deadline_ms.get()
    }

    pub(super) fn is_past_drain_timeout(&self) -> bool {
        self.retire_deadline_ms.get().is_some_and(|at_ms| at_ms <= now_ms())
    }

    /// Announces a request. PHP starts while its body arrives.
    pub(super) fn expect_request(self: &Rc<Self>) -> PendingRequest {
        if self.is_asleep() {
            self.end_rest();
        }
        self.pending_requests.update(|pending| pending + 1);
        PendingRequest(self.clone())
    }

    /// Whether requests may still be submitted; a retiring pool waits for them until its drain time-out.
    pub(super) fn expects_requests(&self) -> bool {
        self.pending_requests.get() > 0 && !self.is_past_drain_timeout()
    }

    /// The pool of another thread has no process any more.
    pub(super) fn dependent_closed(&self) {
        self.dependents.update(|left| left.saturating_sub(1));
        self.demand.set();
    }

    pub(super) fn has_dependents(&self) -> bool {
        self.dependents.get() > 0
    }

    /// The manager sleeps until the next tick. While it rests only an event makes one necessary.
    pub(super) fn sleep(&self, is_slow: bool, is_resting: bool) {
        self.is_slow.set(is_slow);
        self.is_resting.set(is_resting);
    }

    /// Whether requests have come since this was last asked.
    pub(super) fn has_new_requests(&self, requests: u64) -> bool {
        self.requests_at_tick.replace(requests) != requests
    }

    /// Has a resting manager tick: a request was assigned, a worker is killed or lines are dropped.
    pub(super) fn end_rest(&self) {
        if self.is_resting.take() {
            self.demand.set();
        }
    }

    /// A request is queued: it may be that nothing happens before the next slow tick.
    pub(super) fn end_slow_ticks(&self) {
        if self.is_slow.take() {
            self.demand.set();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_woken(lifecycle: &Lifecycle) -> bool {
        lifecycle.demand.poll().is_ready()
    }

    #[test]
    fn only_a_resting_manager_is_woken() {
        outboard_reactor::run(async {
            let lifecycle = Lifecycle::new(0);
            lifecycle.end_rest();
            assert!(!is_woken(&lifecycle));
            lifecycle.sleep(true, true);
            lifecycle.end_rest();
            assert!(is_woken(&lifecycle));
        })
        .unwrap();
    }

    #[test]
    fn the_last_pending_request_of_a_retiring_pool_wakes_the_manager() {
        outboard_reactor::run(async {
            let lifecycle = Lifecycle::new(0);
            let (first, second) = (lifecycle.expect_request(), lifecycle.expect_request());
            lifecycle.retire(now_ms() + 60_000);
            drop(first);
            assert!(lifecycle.expects_requests() && !is_woken(&lifecycle));
            drop(second);
            assert!(!lifecycle.expects_requests() && is_woken(&lifecycle));
        })
        .unwrap();
    }

    #[test]
    fn no_request_is_expected_after_the_drain_timeout() {
        outboard_reactor::run(async {
            let lifecycle = Lifecycle::new(2);
            let _pending = lifecycle.expect_request();
            assert!(lifecycle.expects_requests());
            lifecycle.retire(now_ms());
            assert!(!lifecycle.expects_requests());
            assert!(lifecycle.has_dependents());
            (0..3).for_each(|_| lifecycle.dependent_closed());
            assert!(!lifecycle.has_dependents());
        })
        .unwrap();
    }
}
