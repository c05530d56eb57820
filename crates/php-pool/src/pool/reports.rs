//! Log entries of a pool, with the worker and the request that they belong to.
//!
//! Called by all of the pool. Invariant: a worker writes no more lines than its allowance permits.

use super::Pool;
use super::leases::Lease;
use super::worker::Worker;
use crate::exchange::Exchange;
use crate::recent_slow::RecentSlow;
use outboard_admin_api::dashboard::SlowRequest;
use outboard_log::{Event as LogEvent, Level, Reason, Wall};
use outboard_reactor::now_ms;
use outboard_ring::frame::Tag;
use outboard_ring::response::LogLine;
use outboard_supervisor::plan::deadline::Stage;
use std::rc::Rc;

impl Pool {
    /// Records a request that a worker has finished.
    pub(super) fn record_finished(&self, worker: &mut Worker, lease: &Lease) {
        self.record_response();
        let exchange = &lease.exchange;
        let took_ms = lease.took_ms(now_ms());
        self.placement.record_request();
        if let Some(done) = exchange.done.get() {
            if done.takes_snapshot && !self.settings.is_resident() {
                self.record_snapshot(exchange);
            }
            let (route, counts) = (exchange.route.get(), &mut worker.request_counts);
            self.routes.borrow_mut().record_request(route, done.peak_memory_bytes, counts);
        }
        match lease.stage {
            // It was written when the worker was killed.
            Stage::Killed => {}
            Stage::Cancelled { .. } => {
                let position = self.write_overdue(worker, lease);
                let text = format!("a request was ended at its deadline: it was in {position}");
                self.log_request(worker, exchange, Level::Warn, &text);
            }
            _ => {
                if self.settings.slow_ms.is_some_and(|slow_ms| took_ms >= slow_ms) {
                    let backtrace = worker.process.channel.backtrace(lease.tag).unwrap_or_default();
                    self.write_slow(worker, exchange, took_ms, &backtrace);
                }
            }
        }
    }

    /// Writes a request that has exceeded its deadline to the slow log; returns the line that it was in.
    pub(super) fn write_overdue(&self, worker: &Worker, lease: &Lease) -> String {
        let backtrace = worker.process.channel.backtrace(lease.tag);
        let backtrace = backtrace.as_deref().unwrap_or("(no backtrace)");
        self.write_slow(worker, &lease.exchange, lease.took_ms(now_ms()), backtrace);
        backtrace.lines().next().unwrap_or_default().to_owned()
    }

    fn write_slow(&self, worker: &Worker, exchange: &Exchange, took_ms: u64, backtrace: &str) {
        let text = format!("{} took {took_ms} ms\n{backtrace}", exchange.label());
        for text in text.trim_end().lines() {
            let request = Some(exchange.request_id);
            self.slow_log.write(Level::Warn, LogEvent { request, text, ..self.event(worker) });
        }
        self.recent_slow.borrow().add(SlowRequest {
            at_ms: Wall::now().unix_us / 1_000,
            app: self.settings.app.clone(),
            request: exchange.label(),
            took_ms,
            pid: worker.process.pid,
            server: None,
            backtrace: backtrace.trim_end().to_owned(),
        });
    }

    /// Sets where slow requests are remembered.
    pub fn set_recent_slow(&self, recent: Rc<RecentSlow>) {
        self.recent_slow.replace(recent);
    }

    /// The slow requests of all pools of the thread.
    pub fn recent_slow(&self) -> Rc<RecentSlow> {
        self.recent_slow.borrow().clone()
    }

    /// Logs a line of a worker.
    pub(super) fn log_line(&self, worker: &mut Worker, tag: Tag, line: LogLine<'_>) {
        let text = &String::from_utf8_lossy(line.text);
        worker.record_startup_output(line.text);
        worker.record_startup_output(b"\n");
        worker.record_request_log(tag, text);
        let level = Level::from_syslog(line.severity);
        if !self.error_log.takes(level) {
            return;
        }
        if !worker.allowance.admit(line.text.len()) {
            return self.end_rest();
        }
        let request = worker.request_id(tag);
        // Written after all rings are polled.
        self.log_is_dirty.set(true);
        self.error_log.add(level, LogEvent { request, text, ..self.event(worker) });
    }

    /// Logs how many lines were dropped, once none are dropped any more.
    pub(super) fn log_dropped_lines(&self) {
        if let Some(dropped) = self.allowance.take_dropped() {
            self.log(Level::Warn, &self.allowance.describe_dropped(dropped));
        }
        for worker in self.members.borrow().all() {
            if let Some(dropped) = worker.allowance.take_dropped() {
                self.log_worker(worker, Level::Warn, &worker.allowance.describe_dropped(dropped));
            }
        }
    }

    /// Whether lines were dropped that are not reported yet.
    pub(super) fn has_dropped_lines(&self) -> bool {
        let members = self.members.borrow();
        let mut allowances = members.all().map(|worker| &worker.allowance).chain([&self.allowance]);
        allowances.any(|allowance| allowance.has_dropped())
    }

    /// Logs an event of the app.
    pub(super) fn log(&self, level: Level, text: &str) {
        let event = LogEvent { app: Some(&self.settings.app), text, ..LogEvent::default() };
        self.error_log.write(level, event);
    }

    pub(super) fn log_worker(&self, worker: &Worker, level: Level, text: &str) {
        self.error_log.write(level, LogEvent { text, ..self.event(worker) });
    }

    pub(super) fn log_request(
        &self,
        worker: &Worker,
        exchange: &Exchange,
        level: Level,
        text: &str,
    ) {
        let request = Some(exchange.request_id);
        self.error_log.write(level, LogEvent { request, text, ..self.event(worker) });
    }

    pub(super) fn log_failure(&self, worker: &Worker, reason: Reason, text: &str) {
        let reason = Some(reason);
        self.error_log.write(Level::Error, LogEvent { reason, text, ..self.event(worker) });
    }

    /// An event of a worker and, if it has only one, its request.
    pub(super) fn event(&self, worker: &Worker) -> LogEvent<'_> {
        LogEvent {
            app: Some(&self.settings.app),
            worker: worker.process.pid,
            request: worker.request_id(Tag::default()),
            ..LogEvent::default()
        }
    }
}
