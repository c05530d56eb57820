//! [`PoolLog`]: log entries of a pool, with the worker and the request that they belong to.
//!
//! Owned by the pool, called by all parts of it. A worker's [`Allowance`] limits its lines.

use super::leases::Lease;
use super::settings::PoolSettings;
use super::worker::Worker;
use crate::Recent;
use crate::allowance::{Allowance, Dropped, LogRate};
use crate::exchange::Exchange;
use outboard_admin_api::dashboard::SlowRequest;
use outboard_log::{ErrorLog, Event as LogEvent, Level, Reason, Wall};
use outboard_reactor::now_ms;
use outboard_ring::frame::Tag;
use outboard_ring::response::LogLine;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(super) struct PoolLog {
    app: String,
    rate: LogRate,
    error_log: Rc<ErrorLog>,
    slow_log: Rc<ErrorLog>,
    /// What was written there, of all pools of the thread.
    recent: RefCell<Rc<Recent>>,
    /// Whether lines of workers were added to the log and not written.
    is_dirty: Cell<bool>,
    /// That of the zygote.
    allowance: Rc<Allowance>,
}

impl PoolLog {
    pub(super) fn new(
        settings: &PoolSettings,
        error_log: Rc<ErrorLog>,
        slow_log: Rc<ErrorLog>,
    ) -> Self {
        Self {
            app: settings.app.clone(),
            rate: settings.log_rate,
            error_log,
            slow_log,
            recent: RefCell::default(),
            is_dirty: Cell::new(false),
            allowance: Rc::new(Allowance::new(settings.log_rate)),
        }
    }

    /// The allowance of the zygote.
    pub(super) fn allowance(&self) -> &Rc<Allowance> {
        &self.allowance
    }

    /// The allowance of one worker.
    pub(super) fn new_allowance(&self) -> Rc<Allowance> {
        Rc::new(Allowance::new(self.rate))
    }

    /// Sets where slow requests and errors are remembered.
    pub(super) fn set_recent(&self, recent: Rc<Recent>) {
        self.recent.replace(recent);
    }

    /// The slow requests and errors of all pools of the thread.
    pub(super) fn recent(&self) -> Rc<Recent> {
        self.recent.borrow().clone()
    }

    /// Writes a request that has exceeded its deadline to the slow log; returns the line that it was in.
    pub(super) fn write_overdue(&self, worker: &Worker, lease: &Lease) -> String {
        let backtrace = worker.process.channel.backtrace(lease.tag);
        let backtrace = backtrace.as_deref().unwrap_or("(no backtrace)");
        self.write_slow(worker, &lease.exchange, lease.took_ms(now_ms()), backtrace);
        backtrace.lines().next().unwrap_or_default().to_owned()
    }

    /// Writes a request to the slow log.
    pub(super) fn write_slow(
        &self,
        worker: &Worker,
        exchange: &Exchange,
        took_ms: u64,
        backtrace: &str,
    ) {
        let text = format!("{} took {took_ms} ms\n{backtrace}", exchange.label());
        for text in text.trim_end().lines() {
            let request = Some(exchange.request_id);
            let event = LogEvent { request, ..self.event(worker, text) };
            self.slow_log.write(Level::Warn, event);
        }
        self.recent.borrow().slow.add(SlowRequest {
            at_ms: Wall::now().unix_us / 1_000,
            app: self.app.clone(),
            request: exchange.label(),
            took_ms,
            pid: worker.process.pid,
            server: None,
            backtrace: backtrace.trim_end().to_owned(),
        });
    }

    /// Logs a line of a worker. Returns false if it was dropped: the manager reports that later.
    pub(super) fn log_line(&self, worker: &mut Worker, tag: Tag, line: LogLine<'_>) -> bool {
        let text = &String::from_utf8_lossy(line.text);
        worker.record_startup_output(line.text);
        worker.record_startup_output(b"\n");
        worker.record_request_log(tag, text);
        let level = Level::from_syslog(line.severity);
        if level == Level::Error {
            self.remember(text);
        }
        if !self.error_log.takes(level) {
            return true;
        }
        if !worker.allowance.admit(line.text.len()) {
            return false;
        }
        let request = worker.request_id(tag);
        // Written after all rings are polled.
        self.is_dirty.set(true);
        self.error_log.add(level, LogEvent { request, ..self.event(worker, text) });
        true
    }

    fn remember(&self, text: &str) {
        self.recent.borrow().errors.add(&self.app, text, Wall::now().unix_us / 1_000);
    }

    /// Writes lines of workers that were added.
    pub(super) fn flush_if_dirty(&self) {
        if self.is_dirty.take() {
            self.error_log.flush();
        }
    }

    /// Adds an entry, which [`Self::flush`] writes.
    pub(super) fn add(&self, level: Level, event: LogEvent<'_>) {
        self.error_log.add(level, event);
    }

    pub(super) fn flush(&self) {
        self.error_log.flush();
    }

    /// Logs how many lines were dropped, once none are dropped any more.
    pub(super) fn log_dropped<'a>(&self, workers: impl Iterator<Item = &'a Worker>) {
        if let Some(dropped) = self.allowance.take_dropped() {
            self.log(Level::Warn, &self.allowance.describe_dropped(dropped));
        }
        for worker in workers {
            if let Some(dropped) = worker.allowance.take_dropped() {
                self.log_dropped_of(worker, dropped);
            }
        }
    }

    /// Logs how many lines of a worker that has exited were dropped.
    pub(super) fn log_last_dropped(&self, worker: &Worker) {
        if !Rc::ptr_eq(&worker.allowance, &self.allowance)
            && let Some(dropped) = worker.allowance.take_all_dropped()
        {
            self.log_dropped_of(worker, dropped);
        }
    }

    fn log_dropped_of(&self, worker: &Worker, dropped: Dropped) {
        self.log_worker(worker, Level::Warn, &worker.allowance.describe_dropped(dropped));
    }

    /// Whether lines were dropped that are not reported yet.
    pub(super) fn has_dropped<'a>(&self, workers: impl Iterator<Item = &'a Worker>) -> bool {
        let mut allowances = workers.map(|worker| &worker.allowance).chain([&self.allowance]);
        allowances.any(|allowance| allowance.has_dropped())
    }

    /// Logs an event of the app.
    pub(super) fn log(&self, level: Level, text: &str) {
        self.error_log.write(level, self.app_event(text));
    }

    /// Logs an event of the server itself.
    pub(super) fn note(&self, level: Level, text: &str) {
        self.error_log.note(level, text);
    }

    pub(super) fn log_worker(&self, worker: &Worker, level: Level, text: &str) {
        self.error_log.write(level, self.event(worker, text));
    }

    pub(super) fn log_request(
        &self,
        worker: &Worker,
        exchange: &Exchange,
        level: Level,
        text: &str,
    ) {
        let request = Some(exchange.request_id);
        self.error_log.write(level, LogEvent { request, ..self.event(worker, text) });
    }

    pub(super) fn log_failure(&self, worker: &Worker, reason: Reason, text: &str) {
        let reason = Some(reason);
        self.remember(text);
        self.error_log.write(Level::Error, LogEvent { reason, ..self.event(worker, text) });
    }

    /// Logs that a worker has died with this request.
    pub(super) fn log_crash(&self, worker: &Worker, text: &str, request: Option<u64>) {
        let reason = request.is_some().then_some(Reason::WorkerCrashed);
        let event = LogEvent { request, reason, ..self.event(worker, text) };
        self.remember(text);
        self.error_log.write(Level::Error, event);
    }

    /// An event of the app.
    pub(super) fn app_event<'a>(&'a self, text: &'a str) -> LogEvent<'a> {
        LogEvent { app: Some(&self.app), text, ..LogEvent::default() }
    }

    /// An event of a worker and, if it has only one, its request.
    fn event<'a>(&'a self, worker: &Worker, text: &'a str) -> LogEvent<'a> {
        LogEvent {
            worker: worker.process.pid,
            request: worker.request_id(Tag::default()),
            ..self.app_event(text)
        }
    }
}
