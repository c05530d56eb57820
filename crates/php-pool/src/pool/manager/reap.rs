//! Workers that have exited, and the zygote with all of them.
//!
//! Called by the manager once the zygote has reaped a worker, or has exited. Invariants: the remaining
//! output and frames of the worker are processed; requests that it had started fail, all others are
//! given to other workers.

use super::super::members::Members;
use super::super::worker::Worker;
use super::super::worker_output::{self, OutputReader};
use super::super::{Phase, Pool};
use crate::budget::{Budget, Share};
use crate::exchange::Exchange;
use outboard_log::{Event as LogEvent, Level, Reason};
use outboard_reactor::now_ms;
use outboard_ring::channel::{WaitCall, Waits};
use outboard_supervisor::worker::lifecycle::ExitKind;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;

/// Of signal(7) and exit(3).
const SIGNALS: RangeInclusive<i32> = 1..=64;
const CODES: RangeInclusive<i32> = 0..=255;

impl Pool {
    /// Handles the exit of a worker; `how` describes it for the log.
    pub(in crate::pool) fn reap(&self, number: u64, code: Option<i32>, how: &str) {
        let unread = self.with_worker(number, |worker| {
            worker.has_exited = true;
            worker.output.take().map(|output| (output, worker.allowance.clone()))
        });
        if let (Some(Some((output, allowance))), Some(pool)) = (unread, self.weak_self.upgrade()) {
            let reader = OutputReader { pool, number: Some(number), allowance };
            worker_output::log_remaining(&reader, &output);
        }
        let mut members = self.members.borrow_mut();
        let Some(slot) = members.slot_of(number) else { return };
        self.poll_worker(&mut members, slot, Share::FINAL, &mut Budget::default());
        let Some(mut worker) = self.remove_dead(&mut members, slot) else { return };
        self.phase_changed.set();
        self.publish(&members);
        self.use_reserve(&mut members);
        let unstarted = worker.withdraw_unstarted(now_ms());
        self.reassign(&mut members, unstarted);
        drop(members);
        let failed = worker.fail();
        // A worker script may return.
        let has_returned = self.settings.is_resident() && code == Some(0) && failed.is_empty();
        let activity = match worker.process.lifecycle.exited() {
            ExitKind::Expected | ExitKind::ExpectedWithRequests | ExitKind::Again => return,
            ExitKind::WhileStarting => "starting".to_owned(),
            ExitKind::WhileIdle | ExitKind::WhileServing if has_returned => return,
            ExitKind::WhileIdle | ExitKind::WhileServing => describe_activity(&failed),
        };
        let request = failed.first().map(|exchange| exchange.request_id);
        self.worker_crashed(&worker, format!("a worker {how} while {activity}"), request);
        if !failed.is_empty() {
            self.record_crash();
        }
    }

    /// Counts and logs an unexpected exit.
    fn worker_crashed(&self, worker: &Worker, text: String, request: Option<u64>) {
        let was_ready = worker.process.lifecycle.ready_ms().is_some();
        let text = if was_ready { text } else { worker.startup_output.explain(&text) };
        self.counters.borrow_mut().crashes += 1;
        let reason = request.is_some().then_some(Reason::WorkerCrashed);
        let event = LogEvent { request, reason, text: &text, ..self.event(worker) };
        self.error_log.write(Level::Error, event);
        let mut manager = self.manager.borrow_mut();
        if was_ready {
            manager.backoff.crashed(now_ms());
            return;
        }
        manager.backoff.failed_to_start(now_ms());
        manager.failure.get_or_insert(text);
    }

    /// Removes a worker that has exited, and collects its last counts.
    fn remove_dead(&self, members: &mut Members, slot: usize) -> Option<Worker> {
        let worker = members.remove(slot)?;
        self.forget_operations(worker.id);
        if !Rc::ptr_eq(&worker.allowance, &self.allowance)
            && let Some(dropped) = worker.allowance.take_all_dropped()
        {
            self.log_worker(&worker, Level::Warn, &worker.allowance.describe_dropped(dropped));
        }
        self.shard.remove_pid(worker.process.pid);
        let mut counters = self.counters.borrow_mut();
        for call in WaitCall::ALL {
            add_waits(&mut counters.waits[call as usize], worker.process.channel.waits(call));
        }
        counters.rewinds.add(worker.process.channel.rewinds());
        counters.starts += u64::from(worker.start_us().is_some());
        counters.start_us += worker.start_us().unwrap_or(0);
        Some(worker)
    }

    /// The zygote has exited, and by `PR_SET_PDEATHSIG` all of its workers with it. Returns the phase that it was
    /// in.
    pub(in crate::pool) fn zygote_exited(&self) -> Phase {
        self.manager.borrow_mut().shared_output = None;
        let mut members = self.members.borrow_mut();
        for slot in 0..members.workers.len() {
            let Some(worker) = members.workers[slot].as_mut() else { continue };
            if !worker.is_own {
                continue;
            }
            worker.has_exited = true;
            self.poll_worker(&mut members, slot, Share::FINAL, &mut Budget::default());
            let Some(mut worker) = self.remove_dead(&mut members, slot) else { continue };
            let unstarted = worker.withdraw_unstarted(now_ms());
            members.requeue(unstarted);
            worker.fail();
        }
        drop(members);
        self.forget_placement();
        self.lent_workers_died();
        let phase = self.phase.get();
        if phase == Phase::Serving {
            self.phase.set(Phase::Starting);
        }
        phase
    }

    /// Reports how the zygote has exited, which was in this phase.
    pub(in crate::pool) fn report_zygote_exit(&self, phase: Phase, status: Option<ExitStatus>) {
        let how = status.map_or_else(
            || "has exited".to_owned(),
            |status| describe_exit(status.code(), status.signal()),
        );
        match phase {
            // Otherwise its failure is reported.
            Phase::Starting if self.is_starting() => {
                let host = self.settings.host_binary.display();
                self.start_failed(&format!("{host} {how} while starting"));
            }
            Phase::Serving => {
                let text = format!("the zygote {how}; starting PHP again");
                self.log(Level::Error, &text);
                self.manager.borrow_mut().failure.get_or_insert(text);
                self.phase_changed.set();
            }
            _ => {}
        }
    }

    /// A failure of a start with the last lines that its processes have printed.
    pub(super) fn explain(&self, failure: &str) -> String {
        let output = self.manager.borrow_mut().zygote_output.take();
        if let (Some(output), Some(pool)) = (output, self.weak_self.upgrade()) {
            worker_output::log_remaining(&OutputReader::of_zygote(pool), &output);
        }
        let (members, manager) = (self.members.borrow(), self.manager.borrow());
        let starting = members.own().filter(|worker| worker.start_us().is_none());
        let mut outputs =
            starting.map(|worker| &worker.startup_output).chain([&manager.startup_output]);
        outputs
            .find(|output| !output.is_empty())
            .map_or_else(|| failure.to_owned(), |output| output.explain(failure))
    }
}

/// Adds to a sum of waits. The numbers come from workers, and may be any.
pub(in crate::pool) fn add_waits(sum: &mut Waits, more: Waits) {
    sum.suspended = sum.suspended.saturating_add(more.suspended);
    sum.blocked = sum.blocked.saturating_add(more.blocked);
    sum.blocked_us = sum.blocked_us.saturating_add(more.blocked_us);
}

/// Describes the requests of a worker that has exited.
fn describe_activity(failed: &[Rc<Exchange>]) -> String {
    match failed {
        [] => "idle".to_owned(),
        [only] => format!("processing {}", only.label()),
        [first, others @ ..] => format!("processing {} and {} more", first.label(), others.len()),
    }
}

/// Describes the exit of a process. A zygote may report any numbers: those that no process can have are left out.
pub(super) fn describe_exit(code: Option<i32>, signal: Option<i32>) -> String {
    let signal = signal.filter(|signal| SIGNALS.contains(signal));
    match (code.filter(|code| CODES.contains(code)), signal.map(ExitStatus::from_raw)) {
        // `signal: 11 (SIGSEGV)`
        (_, Some(signal)) => format!("was killed by {}", signal.to_string().replacen(':', "", 1)),
        (Some(code), None) => format!("exited with code {code}"),
        (None, None) => "exited".to_owned(),
    }
}
