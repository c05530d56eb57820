//! The end of workers, and of the zygote with all of them.
//!
//! Called by the manager when the zygote has reaped one, or is gone. Invariants: what a worker still
//! had said is heard; what it had started fails, what it had not goes to others.

use super::super::budget::{Budget, Share};
use super::super::members::Members;
use super::super::worker::Worker;
use super::super::worker_output::{self, OutputReader};
use super::super::{Phase, Pool};
use outboard_log::Reason;
use outboard_log::{Event as LogEvent, Level};
use outboard_reactor::now_ms;
use outboard_ring::channel::{WaitCall, Waits};
use outboard_supervisor::worker::lifecycle::ExitKind;
use std::rc::Rc;

impl Pool {
    /// A worker was reaped: what it still had said is heard, what it had started fails, what it had
    /// not goes to others.
    pub(in crate::pool) fn reap(&self, number: u64, code: Option<i32>, how: &str) {
        let last = self.with_worker(number, |worker| {
            worker.printed.take().map(|printed| (printed, worker.allowance.clone()))
        });
        if let (Some(Some((printed, allowance))), Some(pool)) = (last, self.me.upgrade()) {
            worker_output::log_rest(
                &OutputReader { pool, number: Some(number), allowance },
                &printed,
            );
        }
        let mut members = self.members.borrow_mut();
        let Some(slot) = members.slot_of(number) else { return };
        self.look_at(&mut members, slot, Share::LAST, &mut Budget::default());
        let Some(mut worker) = self.take_dead(&mut members, slot) else { return };
        self.phase_changed.set();
        let unstarted = worker.withdraw_unstarted(now_ms());
        self.serve_again(&mut members, unstarted);
        drop(members);
        let failed = worker.fail();
        let by_itself = self.settings.is_resident() && code == Some(0) && failed.is_empty();
        let doing = match worker.process.lifecycle.exited() {
            ExitKind::Expected | ExitKind::ExpectedWithRequests | ExitKind::Again => return,
            ExitKind::WhileStarting => "starting".to_owned(),
            // The script came to its end.
            ExitKind::WhileIdle | ExitKind::WhileServing if by_itself => return,
            ExitKind::WhileIdle | ExitKind::WhileServing => match failed.first() {
                None => "idle".to_owned(),
                Some(first) if failed.len() == 1 => format!("answering {}", first.label()),
                Some(first) => {
                    format!("answering {} and {} more", first.label(), failed.len() - 1)
                }
            },
        };
        self.crashed(&worker, how, &doing, failed.first().map(|exchange| exchange.request_id));
        if !failed.is_empty() {
            self.note_crash();
        }
    }

    /// Counts and tells a worker's end that nobody asked for.
    fn crashed(&self, worker: &Worker, how: &str, doing: &str, request: Option<u64>) {
        self.counters.borrow_mut().crashes += 1;
        let event = LogEvent {
            request,
            reason: request.is_some().then_some(Reason::WorkerCrashed),
            text: &format!("a worker {how} while {doing}"),
            ..self.event(worker)
        };
        self.error_log.write(Level::Error, event);
        let mut manager = self.manager.borrow_mut();
        if worker.process.lifecycle.ready_ms().is_some() {
            manager.backoff.crashed(now_ms());
            return;
        }
        manager.backoff.failed_to_start(now_ms());
        let words = worker.last_words();
        let separator = if words.is_empty() { "" } else { ": " };
        manager
            .failure
            .get_or_insert_with(|| format!("a worker {how} while {doing}{separator}{words}"));
    }

    /// Takes a worker out that has gone, with what is still to be known of it.
    fn take_dead(&self, members: &mut Members, slot: usize) -> Option<Worker> {
        let worker = members.remove(slot)?;
        self.forget_operations(worker.id);
        if !Rc::ptr_eq(&worker.allowance, &self.allowance)
            && let Some(dropped) = worker.allowance.take_all_dropped()
        {
            self.say_of(&worker, Level::Warn, &worker.allowance.tell(dropped));
        }
        let mut counters = self.counters.borrow_mut();
        for call in WaitCall::ALL {
            add_waits(&mut counters.waits[call as usize], worker.process.channel.waits(call));
        }
        Some(worker)
    }

    /// The zygote has gone, and by `PR_SET_PDEATHSIG` all of its workers with it.
    pub(super) fn zygote_gone(&self) {
        self.manager.borrow_mut().output = None;
        let mut members = self.members.borrow_mut();
        for slot in 0..members.workers.len() {
            self.look_at(&mut members, slot, Share::LAST, &mut Budget::default());
            let Some(mut worker) = self.take_dead(&mut members, slot) else { continue };
            let unstarted = worker.withdraw_unstarted(now_ms());
            members.wait_again(unstarted);
            worker.fail();
        }
        drop(members);
        if self.phase.get() == Phase::Starting && !self.manager.borrow().failing() {
            let host = self.settings.host_binary.display();
            let message = match self.last_words_of_zygote() {
                words if words.is_empty() => {
                    format!("{host} left at once without a word: is it outboard-php?")
                }
                words => format!("{host} left at once: {words}"),
            };
            self.start_failed(message);
        }
        if self.phase.get() == Phase::Serving {
            self.say(Level::Error, "the zygote has gone; starting PHP again");
            self.phase.set(Phase::Starting);
        }
    }
}

impl Pool {
    /// What the zygote said while it started, to its end.
    fn last_words_of_zygote(&self) -> String {
        let printed = self.manager.borrow_mut().printed.take();
        if let (Some(printed), Some(pool)) = (printed, self.me.upgrade()) {
            let allowance = self.allowance.clone();
            worker_output::log_rest(&OutputReader { pool, number: None, allowance }, &printed);
        }
        self.manager.borrow().words.trim_end().to_owned()
    }
}

/// Adds to a sum of waits, which workers count as they like.
pub(in crate::pool) fn add_waits(sum: &mut Waits, more: Waits) {
    sum.suspended = sum.suspended.saturating_add(more.suspended);
    sum.blocked = sum.blocked.saturating_add(more.blocked);
    sum.blocked_us = sum.blocked_us.saturating_add(more.blocked_us);
}

/// How a process has ended, for the log.
pub(super) fn describe_exit(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        (Some(code), None) => format!("left with code {code}"),
        (None, None) => "has gone".to_owned(),
    }
}
