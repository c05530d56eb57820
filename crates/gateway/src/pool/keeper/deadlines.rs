//! The wall-clock deadline of a request, enforced from outside of PHP.
//!
//! At the deadline the client gets its 504 and the worker is asked for a backtrace; it is killed
//! when the backtrace has come or has taken too long. Nothing that PHP does, blocks in or ignores
//! can hold a worker longer. The order of the steps is `outboard_supervisor`'s plan.

use super::super::Pool;
use super::super::worker::Worker;
use crate::exchange::End;
use crate::log::Level;
use crate::reason::Reason;
use outboard_ring::control::BACKTRACE_SIGNAL;
use outboard_supervisor::plan::deadline::{Bounds, Cause, Step, Watch, step};
use outboard_supervisor::worker::life::State;

impl Pool {
    /// Takes the next step with every worker that has had too long.
    pub(super) fn enforce_deadlines(&self, now_ms: u64) {
        let retire_deadline_ms = self.keeping.borrow().retire_deadline_ms;
        let mut members = self.members.borrow_mut();
        for worker in members.workers.iter_mut().flatten() {
            let Some(bounds) = self.bounds(worker, retire_deadline_ms) else { continue };
            let has_backtrace = worker.backtrace().is_some();
            let step = step(now_ms, &Watch { bounds, stage: worker.stage, has_backtrace });
            match step {
                Step::Wait { .. } => {}
                Step::AnswerAndAsk(cause) => {
                    self.expire(worker, cause);
                    self.signal(worker.process.number, BACKTRACE_SIGNAL);
                }
                Step::AskAgain => self.signal(worker.process.number, BACKTRACE_SIGNAL),
                Step::Kill(cause) => self.end(worker, cause, now_ms),
            }
            worker.stage = step.next_stage(worker.stage, now_ms);
        }
    }

    /// What a worker is bound by now.
    fn bounds(&self, worker: &Worker, retire_deadline_ms: Option<u64>) -> Option<Bounds> {
        let life = &worker.process.life;
        let drain_deadline_ms = life.drain_deadline_ms();
        match (life.state(), life.run()) {
            (State::Forking | State::Booting, _) => Some(Bounds::Starting {
                ready_by_ms: life.ordered_ms() + self.settings.start_timeout_ms,
            }),
            (State::Busy | State::Draining, Some(run)) => Some(Bounds::Running {
                deadline_ms: run.deadline_ms,
                drain_deadline_ms: drain_deadline_ms.or(retire_deadline_ms),
            }),
            (State::Draining, None) => {
                drain_deadline_ms.map(|at_ms| Bounds::Leaving { drain_deadline_ms: at_ms })
            }
            _ => None,
        }
    }

    /// The client need not wait for the backtrace.
    fn expire(&self, worker: &Worker, cause: Cause) {
        self.counters.borrow_mut().deadlines += 1;
        let reason = if cause == Cause::Drain { Reason::Draining } else { Reason::Deadline };
        if let Some(exchange) = &worker.exchange {
            exchange.finish(End::Failed(reason));
        }
    }

    fn end(&self, worker: &mut Worker, cause: Cause, now_ms: u64) {
        if let Some(exchange) = worker.exchange.clone() {
            let backtrace = worker.backtrace();
            let backtrace = backtrace.as_deref().unwrap_or("(no backtrace came)");
            let took_ms = worker.process.life.busy_ms(now_ms).unwrap_or(0);
            self.write_slow(worker, &exchange, took_ms, backtrace);
            let place = backtrace.lines().next().unwrap_or_default();
            let text = format!("a worker is killed, {cause}: it was in {place}");
            self.say_of(worker, Level::Warn, &text);
        } else {
            self.say_of(worker, Level::Warn, &format!("a worker is killed: {cause}"));
        }
        self.kill(worker);
    }
}
