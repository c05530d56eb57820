//! The wall-clock deadlines of requests and the threshold of the slow log, enforced from outside of PHP.
//!
//! Called by the manager in each tick. At the deadline the client gets a 504, and a signal requests a
//! backtrace from the worker. Once that has arrived or takes too long, a worker with several requests is
//! to cancel this one; a worker that does not, or has only this one, is killed. Invariant: nothing that
//! PHP does, blocks in or ignores can occupy a worker longer. `outboard_supervisor` plans the steps.

use super::core::PoolCore;
use super::leases::Lease;
use super::members::Members;
use super::worker::Worker;
use crate::exchange::End;
use outboard_log::{Level, Reason};
use outboard_ring::control::BACKTRACE_SIGNAL;
use outboard_ring::frame::Tag;
use outboard_supervisor::plan::deadline::{Bounds, Cause, Stage, Step, Watch, step};
use outboard_supervisor::worker::lifecycle::State;

/// Takes the next step for every worker and every request that has reached a deadline.
pub(super) fn enforce(core: &PoolCore, now_ms: u64) {
    let retire_deadline_ms = core.lifecycle.retire_deadline_ms();
    let mut members = core.members.borrow_mut();
    for slot in 0..members.roster.slots() {
        let Some(worker) = members.roster.get_mut(slot) else { continue };
        if let Some(bounds) = own_bounds(worker, core.settings.start_timeout_ms) {
            let (stage, has_backtrace, can_cancel) = (Stage::InTime, false, false);
            let watch = Watch { bounds, stage, has_backtrace, can_cancel };
            if let Step::Kill(cause) = step(now_ms, &watch) {
                core.log.log_worker(worker, Level::Warn, &format!("a worker is killed: {cause}"));
                core.kill(worker);
            }
        }
        // A worker may be draining already when its pool retires: the earlier deadline applies.
        let worker_deadline_ms = worker.process.lifecycle.drain_deadline_ms();
        let drain_deadline_ms =
            [worker_deadline_ms, retire_deadline_ms].into_iter().flatten().min();
        for tag in overdue(worker, drain_deadline_ms, now_ms) {
            enforce_one(core, &mut members, slot, tag, drain_deadline_ms, now_ms);
        }
        members.roster.update_room_list(slot);
    }
}

/// The deadline of a worker without a request.
fn own_bounds(worker: &Worker, start_timeout_ms: u64) -> Option<Bounds> {
    let life = &worker.process.lifecycle;
    match life.state() {
        State::Forking | State::Booting => Some(Bounds::Starting {
            ready_by_ms: life.ordered_ms().saturating_add(start_timeout_ms),
        }),
        State::Draining if life.requests() == 0 => {
            life.drain_deadline_ms().map(|at_ms| Bounds::Leaving { drain_deadline_ms: at_ms })
        }
        _ => None,
    }
}

fn enforce_one(
    core: &PoolCore,
    members: &mut Members,
    slot: usize,
    tag: Tag,
    drain_deadline_ms: Option<u64>,
    now_ms: u64,
) {
    let Some(worker) = members.roster.get_mut(slot) else { return };
    let backtrace = worker.process.channel.backtrace(tag);
    let can_cancel = worker.can_cancel();
    // Code that is stopped at a breakpoint goes on when its developer says so.
    let is_debugged = core.settings.is_debugged && worker.process.channel.is_debugged();
    let Some(lease) = worker.leases.get_mut(tag) else { return };
    // One from before the deadline does not tell where the request is now.
    let has_backtrace = backtrace.is_some() && backtrace != lease.earlier_backtrace;
    let deadline_ms = lease.timing.map(|timing| timing.deadline_ms).filter(|_| !is_debugged);
    let bounds = Bounds::Running { deadline_ms, drain_deadline_ms };
    let watch = Watch { bounds, stage: lease.stage, has_backtrace, can_cancel };
    let step = step(now_ms, &watch);
    lease.stage = step.next_stage(lease.stage, now_ms);
    match step {
        Step::Wait { .. } => {}
        Step::RespondAndSignal(cause) => {
            lease.earlier_backtrace = backtrace;
            core.counters.borrow_mut().deadlines += 1;
            let reason = if cause == Cause::Drain { Reason::Draining } else { Reason::Deadline };
            lease.exchange.finish(End::Failed(reason));
            // A request that was not started costs nothing more.
            if can_cancel && worker.withdraw(tag, now_ms).is_some() {
                return;
            }
            core.signal(worker.process.number, BACKTRACE_SIGNAL);
        }
        Step::SignalAgain => core.signal(worker.process.number, BACKTRACE_SIGNAL),
        Step::Cancel => {
            if let Err(corrupt) = worker.cancel(tag) {
                core.kill_for_protocol_error(members, slot, corrupt);
            }
        }
        Step::Kill(cause) => kill_overdue(core, worker, tag, cause),
    }
}

fn kill_overdue(core: &PoolCore, worker: &mut Worker, tag: Tag, cause: Cause) {
    if let Some(lease) = worker.leases.get(tag) {
        let position = core.log.write_overdue(worker, lease);
        let text = format!("a worker is killed, {cause}: it was in {position}");
        core.log.log_request(worker, &lease.exchange, Level::Warn, &text);
    }
    core.kill(worker);
    debug_assert!(worker.state() >= State::Killing, "{worker:?} goes on after its deadline");
}

/// The requests of a worker that have reached a deadline.
fn overdue(worker: &Worker, drain_deadline_ms: Option<u64>, now_ms: u64) -> Vec<Tag> {
    if worker.state() >= State::Killing {
        return Vec::new();
    }
    let is_draining = drain_deadline_ms.is_some_and(|at_ms| at_ms <= now_ms);
    let running = worker.leases.iter().filter_map(|lease| Some((lease, lease.timing?)));
    running
        .filter(|(lease, timing)| {
            is_draining || timing.deadline_ms <= now_ms || lease.stage != Stage::InTime
        })
        .map(|(lease, _)| lease.tag)
        .collect()
}

/// Requests a backtrace of each worker with a request that has reached the threshold of the slow log. A request costs
/// its worker at most one signal here, and a system call that it waits in is not interrupted: the zygote reads such a
/// worker from outside.
pub(super) fn request_slow_backtraces(core: &PoolCore, now_ms: u64) {
    let slow_ms = core.settings.slow_ms;
    let is_due =
        |lease: &&mut Lease| lease.slow_at_ms(slow_ms).is_some_and(|at_ms| at_ms <= now_ms);
    for worker in core.members.borrow_mut().roster.all_mut() {
        let found = worker.leases.iter_mut().filter(is_due);
        if found.map(|lease| lease.is_slow = true).count() > 0 {
            core.signal(worker.process.number, BACKTRACE_SIGNAL);
        }
    }
}
