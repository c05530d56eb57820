//! The wall-clock deadlines of requests, enforced from outside of PHP.
//!
//! At the deadline the client gets its 504 and the worker is asked for a backtrace. When that has
//! come or has taken too long, a worker with other requests is told to end this one; one that does
//! not, or has no others, is killed. Nothing that PHP does, blocks in or ignores can hold a worker
//! longer. The order of the steps is `outboard_supervisor`'s plan.

use super::super::Pool;
use super::super::members::Members;
use super::super::worker::Worker;
use crate::exchange::End;
use outboard_log::Level;
use outboard_log::Reason;
use outboard_ring::control::BACKTRACE_SIGNAL;
use outboard_ring::frame::Tag;
use outboard_supervisor::plan::deadline::{Bounds, Cause, Stage, Step, Watch, step};
use outboard_supervisor::worker::lifecycle::State;

impl Pool {
    /// Takes the next step with every worker, and every request, that has had too long.
    pub(in crate::pool) fn enforce_deadlines(&self, now_ms: u64) {
        let retire_deadline_ms = self.manager.borrow().retire_deadline_ms;
        let mut members = self.members.borrow_mut();
        for slot in 0..members.workers.len() {
            let Some(worker) = members.workers[slot].as_mut() else { continue };
            if let Some(bounds) = self.own_bounds(worker) {
                let (stage, has_backtrace, can_cancel) = (Stage::InTime, false, false);
                let watch = Watch { bounds, stage, has_backtrace, can_cancel };
                if let Step::Kill(cause) = step(now_ms, &watch) {
                    self.say_of(worker, Level::Warn, &format!("a worker is killed: {cause}"));
                    self.kill(worker);
                }
            }
            let drain_deadline_ms =
                worker.process.lifecycle.drain_deadline_ms().or(retire_deadline_ms);
            for tag in late(worker, drain_deadline_ms, now_ms) {
                self.enforce_deadline(&mut members, slot, tag, drain_deadline_ms, now_ms);
            }
            members.settle(slot);
        }
    }

    /// What a worker without a request is bound by.
    fn own_bounds(&self, worker: &Worker) -> Option<Bounds> {
        let life = &worker.process.lifecycle;
        match life.state() {
            State::Forking | State::Booting => Some(Bounds::Starting {
                ready_by_ms: life.ordered_ms().saturating_add(self.settings.start_timeout_ms),
            }),
            State::Draining if life.requests() == 0 => {
                life.drain_deadline_ms().map(|at_ms| Bounds::Leaving { drain_deadline_ms: at_ms })
            }
            _ => None,
        }
    }

    fn enforce_deadline(
        &self,
        members: &mut Members,
        slot: usize,
        tag: Tag,
        drain_deadline_ms: Option<u64>,
        now_ms: u64,
    ) {
        let Some(worker) = members.workers[slot].as_mut() else { return };
        let (has_backtrace, can_cancel) = (worker.backtrace(tag).is_some(), worker.can_cancel());
        let Some(lease) = worker.lease_mut(tag) else { return };
        let deadline_ms = lease.run.map(|run| run.deadline_ms);
        let bounds = Bounds::Running { deadline_ms, drain_deadline_ms };
        let watch = Watch { bounds, stage: lease.stage, has_backtrace, can_cancel };
        let step = step(now_ms, &watch);
        lease.stage = step.next_stage(lease.stage, now_ms);
        match step {
            Step::Wait { .. } => {}
            Step::RespondAndSignal(cause) => {
                self.counters.borrow_mut().deadlines += 1;
                let reason =
                    if cause == Cause::Drain { Reason::Draining } else { Reason::Deadline };
                lease.exchange.finish(End::Failed(reason));
                // One that its worker never came to costs nothing more.
                if can_cancel && worker.withdraw(tag, now_ms).is_some() {
                    return;
                }
                self.signal(worker.process.number, BACKTRACE_SIGNAL);
            }
            Step::SignalAgain => self.signal(worker.process.number, BACKTRACE_SIGNAL),
            Step::Cancel => {
                if let Err(corrupt) = worker.cancel(tag) {
                    self.condemn(worker, corrupt);
                }
            }
            Step::Kill(cause) => self.end(worker, tag, cause),
        }
    }

    fn end(&self, worker: &mut Worker, tag: Tag, cause: Cause) {
        if let Some(lease) = worker.lease(tag) {
            let place = self.write_late(worker, lease);
            let text = format!("a worker is killed, {cause}: it was in {place}");
            self.say_about(worker, &lease.exchange, Level::Warn, &text);
        }
        self.kill(worker);
    }
}

/// The requests of a worker that have reached a bound.
fn late(worker: &Worker, drain_deadline_ms: Option<u64>, now_ms: u64) -> Vec<Tag> {
    if worker.state() >= State::Killing {
        return Vec::new();
    }
    let draining = drain_deadline_ms.is_some_and(|at_ms| at_ms <= now_ms);
    let running = worker.leases().filter_map(|lease| Some((lease, lease.run?)));
    running
        .filter(|(lease, run)| {
            draining || run.deadline_ms <= now_ms || lease.stage != Stage::InTime
        })
        .map(|(lease, _)| lease.tag)
        .collect()
}
