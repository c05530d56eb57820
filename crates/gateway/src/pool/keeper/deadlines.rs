//! The wall-clock deadline of a request, enforced from outside of PHP.
//!
//! At the deadline the client gets its 504 and the worker is asked for a backtrace; it is killed
//! when the backtrace has come or has taken too long. Nothing that PHP does, blocks in or ignores
//! can hold a worker longer.

use super::super::Pool;
use super::super::worker::{Overdue, State, Worker};
use crate::exchange::End;
use crate::reason::Reason;
use outboard_ring::control::BACKTRACE_SIGNAL;

/// How long each request for a backtrace is waited for.
const BACKTRACE_MS: u64 = 50;

impl Pool {
    /// Takes the next step with every overdue worker.
    pub(super) fn enforce_deadlines(&self, now_ms: u64) {
        let retire_deadline_ms = self.keeping.borrow().retire_deadline_ms;
        let mut members = self.members.borrow_mut();
        for worker in members.workers.iter_mut().flatten() {
            match worker.state {
                State::Busy => self.enforce(worker, now_ms, retire_deadline_ms),
                State::Booting if now_ms >= worker.since_ms + self.settings.start_timeout_ms => {
                    self.report(worker, Reason::AppDown, "a worker does not get ready");
                    self.kill(worker);
                }
                State::Stopping if now_ms >= worker.since_ms + self.settings.deadline_ms => {
                    self.kill(worker);
                }
                _ => {}
            }
        }
    }

    fn enforce(&self, worker: &mut Worker, now_ms: u64, retire_deadline_ms: u64) {
        let deadline_ms = (worker.since_ms + self.settings.deadline_ms).min(retire_deadline_ms);
        let over_ms = now_ms.saturating_sub(deadline_ms);
        match worker.overdue {
            Overdue::No if now_ms >= deadline_ms => self.expire(worker),
            Overdue::Asked(_) if worker.backtrace().is_some() => self.end(worker, now_ms),
            Overdue::Asked(1) if over_ms >= BACKTRACE_MS => self.ask(worker, 2),
            Overdue::Asked(2) if over_ms >= 2 * BACKTRACE_MS => self.end(worker, now_ms),
            _ => {}
        }
    }

    /// The client need not wait for the backtrace.
    fn expire(&self, worker: &mut Worker) {
        self.counters.borrow_mut().deadlines += 1;
        if let Some(exchange) = &worker.exchange {
            exchange.finish(End::Failed(Reason::Deadline));
        }
        self.ask(worker, 1);
    }

    fn ask(&self, worker: &mut Worker, time: u32) {
        worker.overdue = Overdue::Asked(time);
        self.signal(worker.number, BACKTRACE_SIGNAL);
    }

    fn end(&self, worker: &mut Worker, now_ms: u64) {
        let backtrace = worker.backtrace().unwrap_or_else(|| "(no backtrace came)".to_owned());
        if let Some(exchange) = worker.exchange.clone() {
            let took_ms = now_ms.saturating_sub(worker.since_ms);
            self.write_slow(worker, &exchange, took_ms, &backtrace);
            let place = backtrace.lines().next().unwrap_or_default();
            self.report(worker, Reason::Deadline, &format!("{} was in {place}", exchange.label));
        }
        self.kill(worker);
    }
}
