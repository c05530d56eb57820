//! What a pool writes to the logs, with the worker and the request that it is about.

use super::Pool;
use super::leases::Lease;
use super::worker::Worker;
use crate::exchange::Exchange;
use outboard_log::Reason;
use outboard_log::{Event as LogEvent, Level};
use outboard_reactor::now_ms;
use outboard_ring::frame::Tag;
use outboard_ring::response::LogLine;
use outboard_supervisor::plan::deadline::Stage;

impl Pool {
    /// Books a request that a worker has finished.
    pub(super) fn finished(&self, worker: &mut Worker, lease: &Lease) {
        self.note_answer();
        let exchange = &lease.exchange;
        if let Some(done) = exchange.done.get() {
            let mut routes = self.routes.borrow_mut();
            routes.finished(exchange.route.get(), done.peak_memory_bytes, &mut worker.shares);
        }
        match lease.stage {
            // It was written when the worker was.
            Stage::Killed => {}
            Stage::Cancelled { .. } => {
                let place = self.write_late(worker, lease);
                let text = format!("a request was ended at its deadline: it was in {place}");
                self.say_about(worker, exchange, Level::Warn, &text);
            }
            _ => {
                let took_ms = lease.took_ms(now_ms());
                if self.settings.slow_ms.is_some_and(|slow_ms| took_ms >= slow_ms) {
                    let backtrace = worker.backtrace(lease.tag).unwrap_or_default();
                    self.write_slow(worker, exchange, took_ms, &backtrace);
                }
            }
        }
    }

    /// Writes a request that took longer than its deadline to the slow log; returns the line that
    /// it was in.
    pub(super) fn write_late(&self, worker: &Worker, lease: &Lease) -> String {
        let backtrace = worker.backtrace(lease.tag);
        let backtrace = backtrace.as_deref().unwrap_or("(no backtrace came)");
        self.write_slow(worker, &lease.exchange, lease.took_ms(now_ms()), backtrace);
        backtrace.lines().next().unwrap_or_default().to_owned()
    }

    fn write_slow(&self, worker: &Worker, exchange: &Exchange, took_ms: u64, backtrace: &str) {
        let text = format!("{} took {took_ms} ms\n{backtrace}", exchange.label());
        for text in text.trim_end().lines() {
            let request = Some(exchange.request_id);
            self.slow_log.write(Level::Warn, LogEvent { request, text, ..self.event(worker) });
        }
    }

    /// Logs a line of a worker.
    pub(super) fn log(&self, worker: &mut Worker, tag: Tag, line: LogLine<'_>) {
        let text = &String::from_utf8_lossy(line.text);
        worker.keep_words(text);
        worker.keep_words_about(tag, text);
        let level = Level::from_syslog(line.severity);
        if !self.error_log.takes(level) || !worker.allowance.admit(line.text.len()) {
            return;
        }
        let request = worker.request_id(tag);
        // Written with the others of this look.
        self.said.set(true);
        self.error_log.add(level, LogEvent { request, text, ..self.event(worker) });
    }

    /// Tells of lines that were dropped while there were too many, once that is over.
    pub(super) fn tell_dropped(&self) {
        if let Some(dropped) = self.allowance.take_dropped() {
            self.say(Level::Warn, &self.allowance.tell(dropped));
        }
        for worker in self.members.borrow().all() {
            if let Some(dropped) = worker.allowance.take_dropped() {
                self.say_of(worker, Level::Warn, &worker.allowance.tell(dropped));
            }
        }
    }

    pub(super) fn say_of(&self, worker: &Worker, level: Level, text: &str) {
        self.error_log.write(level, LogEvent { text, ..self.event(worker) });
    }

    pub(super) fn say_about(&self, worker: &Worker, exchange: &Exchange, level: Level, text: &str) {
        let request = Some(exchange.request_id);
        self.error_log.write(level, LogEvent { request, text, ..self.event(worker) });
    }

    /// An event about a worker and, if it has one alone, its request.
    pub(super) fn event(&self, worker: &Worker) -> LogEvent<'_> {
        LogEvent {
            app: Some(&self.settings.app),
            worker: worker.process.pid,
            request: worker.request_id(Tag::default()),
            ..LogEvent::default()
        }
    }

    pub(super) fn report(&self, worker: &Worker, reason: Reason, text: &str) {
        let reason = Some(reason);
        self.error_log.write(Level::Error, LogEvent { reason, text, ..self.event(worker) });
    }
}
