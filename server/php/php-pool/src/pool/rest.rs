//! The rest of a pool without requests: when its processes may end, and what has PHP started again.
//!
//! Called by the manager. Invariant: a pool that sleeps has no process, and starts one for the first request, or for a
//! thread that needs its zygote.

use super::core::PoolCore;
use super::lending::siblings::Siblings;
use super::lifecycle::Phase;
use super::worker::Worker;

/// Waits without a process until one is needed, if the pool may sleep.
pub(super) async fn until_needed(core: &PoolCore, siblings: &Siblings, is_done: impl Fn() -> bool) {
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
    lifecycle.wake();
}

/// Whether there has been no request for so long that the processes may end. The first zygote stays for those of
/// other threads.
pub(super) fn may_begin(core: &PoolCore, siblings: &Siblings, now_ms: u64) -> bool {
    if !core.settings.sleeps() || !core.lifecycle.is_serving() || now_ms < due_ms(core) {
        return false;
    }
    let members = core.members.borrow();
    let is_idle = |worker: &Worker| {
        worker.is_own
            && worker.process.lifecycle.idle_ms(now_ms) >= Some(core.settings.idle_timeout_ms)
    };
    !needs_process(core, siblings)
        && members.lent.is_empty()
        && members.roster.all().all(is_idle)
        && !(core.shard.is_lead() && core.shard.is_awake_elsewhere())
}

/// The earliest time for a pool without workers, as the part of one thread may be.
pub(super) fn due_ms(core: &PoolCore) -> u64 {
    core.lifecycle.woken_ms().saturating_add(core.settings.idle_timeout_ms)
}

/// Whether a request waits here, or a thread for its zygote.
fn needs_process(core: &PoolCore, siblings: &Siblings) -> bool {
    core.lifecycle.expects_requests()
        || !core.members.borrow().queue.is_empty()
        || siblings.has_waiting()
}
