//! [`Rest`]: when the processes of a pool without requests may end, and what has PHP started again.
//!
//! Owned by the pool, called by its manager. Invariant: a pool that sleeps has no process, and starts one for the first
//! request, or for a thread that needs its zygote.

use super::core::PoolCore;
use super::lending::siblings::Siblings;
use super::lifecycle::Phase;
use super::worker::Worker;
use outboard_reactor::now_ms;
use std::cell::Cell;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// When the pool was last asleep.
    woken_ms: Cell<u64>,
}

impl Rest {
    /// Waits without a process until one is needed, if the pool may sleep.
    pub(super) async fn until_needed(
        &self,
        core: &PoolCore,
        siblings: &Siblings,
        is_done: impl Fn() -> bool,
    ) {
        let lifecycle = &core.lifecycle;
        if !core.settings.sleeps() {
            return;
        }
        debug_assert!(core.zygote.borrow().is_none(), "the pool has a process");
        if !lifecycle.is_retired() {
            lifecycle.enter(Phase::Asleep);
        }
        core.shard.publish_asleep(true);
        lifecycle.changed().set();
        // A worker that another thread has lent too late is given back by a manager that is awake.
        let has_worker = || core.members.borrow().roster.all().next().is_some();
        while !is_done() && !needs_process(core, siblings) && !has_worker() {
            lifecycle.sleep(true, true);
            lifecycle.demand().wait().await;
        }
        core.shard.publish_asleep(false);
        self.woken_ms.set(now_ms());
        if lifecycle.is_asleep() {
            lifecycle.enter(Phase::Starting);
        }
    }

    /// Whether there has been no request for so long that the processes may end. The first zygote stays for
    /// those of other threads.
    pub(super) fn may_begin(&self, core: &PoolCore, siblings: &Siblings, now_ms: u64) -> bool {
        if !core.settings.sleeps() || !core.lifecycle.is_serving() {
            return false;
        }
        let (members, timeout_ms) = (core.members.borrow(), core.settings.idle_timeout_ms);
        let is_idle = |worker: &Worker| {
            worker.is_own && worker.process.lifecycle.idle_ms(now_ms) >= Some(timeout_ms)
        };
        !needs_process(core, siblings)
            && members.lent.is_empty()
            && members.roster.all().all(is_idle)
            && now_ms.saturating_sub(self.woken_ms.get()) >= timeout_ms
            && !(core.shard.is_lead() && core.shard.is_awake_elsewhere())
    }
}

/// Whether a request waits here, or a thread for its zygote.
fn needs_process(core: &PoolCore, siblings: &Siblings) -> bool {
    core.lifecycle.has_pending_requests()
        || !core.members.borrow().queue.is_empty()
        || siblings.has_waiting()
}
