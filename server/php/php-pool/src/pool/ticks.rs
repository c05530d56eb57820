//! When the manager ticks next: often while there is work, and not at all without.
//!
//! Asked by the manager before it sleeps. Invariant: whatever needs a tick is visible before the manager rests, or
//! wakes it.

use super::core::PoolCore;
use super::dispatch::Dispatcher;
use super::lending::BORROWED_IDLE_MS;
use super::rest;
use super::worker::Worker;
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
const _: () = assert!(BUSY_TICK_MS < IDLE_TICK_MS && IDLE_TICK_MS < RUNNING_TICK_MS);

/// When the next tick is due, after `now_ms`; `u64::MAX` if only an event makes one necessary.
pub(super) fn next_tick_ms(core: &PoolCore, dispatcher: &Dispatcher, now_ms: u64) -> u64 {
    let (is_changing, is_running, deadline_ms) = {
        let members = core.members.borrow();
        let workers = members.roster.all();
        let is_changing = !members.queue.is_empty()
            || workers.clone().any(is_changing)
            || members.lent.kills_ms().next().is_some();
        let is_running = workers.clone().any(|worker| worker.state() == State::Busy);
        let leases = workers.flat_map(|worker| worker.leases.iter());
        let deadlines = leases.filter_map(|lease| {
            let deadline_ms = lease.timing?.deadline_ms;
            let slow_at_ms = lease.slow_at_ms(core.settings.slow_ms);
            Some(slow_at_ms.map_or(deadline_ms, |at_ms| at_ms.min(deadline_ms)))
        });
        // The steps after a deadline follow in busy ticks.
        let next = deadlines.filter(|at_ms| *at_ms > now_ms).min();
        (is_changing, is_running, next.unwrap_or(u64::MAX))
    };
    let comes = core.lifecycle.has_new_requests(core.counters.borrow().requests);
    let is_settled = !is_changing && !comes && is_settled(core, dispatcher);
    core.lifecycle.sleep(!is_changing, is_settled);
    let next_idle_ms = next_idle_timeout_ms(core, dispatcher, now_ms);
    let interval_ms = match is_running {
        _ if is_changing => BUSY_TICK_MS,
        true if comes => BUSY_TICK_MS,
        _ if !is_settled => IDLE_TICK_MS,
        true => RUNNING_TICK_MS,
        false if has_memory_limit(core) => MEMORY_TICK_MS,
        false => return next_idle_ms,
    };
    let tick_ms = deadline_ms.min(now_ms + interval_ms).min(next_idle_ms);
    debug_assert!(tick_ms > now_ms, "the manager would tick all the time");
    tick_ms
}

fn has_memory_limit(core: &PoolCore) -> bool {
    core.settings.is_resident() && core.settings.recycle_memory_bytes.is_some()
}

/// Whether ticks change nothing before the next event.
fn is_settled(core: &PoolCore, dispatcher: &Dispatcher) -> bool {
    core.lifecycle.is_serving()
        && dispatcher.replacements.is_empty()
        && dispatcher.sizing.borrow().decision == Some(Decision::Hold(Reason::Enough))
        && !core.log.has_dropped(core.members.borrow().roster.all())
        && !dispatcher.placement.is_active()
}

/// When a worker beyond the minimum, or of a pool that may sleep, has been idle for long; `u64::MAX` for never.
fn next_idle_timeout_ms(core: &PoolCore, dispatcher: &Dispatcher, now_ms: u64) -> u64 {
    let members = core.members.borrow();
    let mut workers = members.roster.all();
    if workers.clone().any(|worker| !worker.is_own && worker.state() == State::Idle) {
        return now_ms + BORROWED_IDLE_MS;
    }
    if core.settings.sleeps() && rest::due_ms(core) > now_ms {
        return rest::due_ms(core);
    }
    if !core.settings.sleeps() && members.active() <= dispatcher.sizing.borrow().bounds.min() {
        return u64::MAX;
    }
    let timeout_ms = core.settings.idle_timeout_ms;
    let idle = workers.by_ref().filter_map(|worker| worker.process.lifecycle.idle_ms(now_ms));
    let left = idle.filter_map(|idle_ms| timeout_ms.checked_sub(idle_ms)).filter(|ms| *ms > 0);
    left.min().map_or(u64::MAX, |left_ms| now_ms + left_ms)
}

/// Whether a worker starts, ends, has a backlog or a request past its deadline.
fn is_changing(worker: &Worker) -> bool {
    !worker.is_ready()
        || worker.backlog_len() > 0
        || worker.leases.iter().any(|lease| lease.stage != Stage::InTime)
}
