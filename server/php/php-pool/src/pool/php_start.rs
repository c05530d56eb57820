//! [`PhpStart`]: whether PHP has started, why it does not, and when a fork is permitted.
//!
//! Written by the manager, read by all parts of the pool; it calls none. Invariants: a start is under way until
//! its result or its time-out is reported; after crashes and failed starts nothing is forked for some time.

use super::startup_output::StartupOutput;
use outboard_ring::control::{RequestRead, Rewind};
use outboard_supervisor::plan::backoff::Backoff;
use rustix::fd::OwnedFd;
use std::rc::Rc;

/// What the zygote has reported about the boot of the script.
#[derive(Debug, Default)]
pub(super) struct BootReport {
    pub(super) php_version: String,
    /// How workers are rewound, if they are.
    pub(super) rewind: Option<Rewind>,
    /// Why they are not, although they should be.
    pub(super) rewind_refused: Option<String>,
    /// What the boot of the script has read of a request.
    pub(super) request_reads: Option<Rc<[RequestRead]>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct PhpStart {
    /// Of the last start that has succeeded.
    pub(super) boot: BootReport,
    /// Why PHP does not start, while it does not.
    pub(super) failure: Option<String>,
    /// Until when PHP has to be started; `None` once it is.
    started_by_ms: Option<u64>,
    backoff: Backoff,
    /// The zygote's output: the pipe, and what was read from it during the start.
    zygote_output: Option<OwnedFd>,
    startup_output: StartupOutput,
}

impl PhpStart {
    pub(super) fn new() -> Self {
        Self {
            boot: BootReport::default(),
            failure: None,
            started_by_ms: None,
            backoff: Backoff::new(),
            zygote_output: None,
            startup_output: StartupOutput::default(),
        }
    }

    /// A zygote starts PHP, and prints here.
    pub(super) fn begin(&mut self, started_by_ms: u64, output: Option<OwnedFd>) {
        self.started_by_ms = Some(started_by_ms);
        self.zygote_output = output;
        self.startup_output = StartupOutput::default();
    }

    /// Whether the zygote has not reported the result of its start yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.started_by_ms.is_some()
    }

    /// Whether the start of the zygote takes too long. With workers that are rewound the boot of the script
    /// is a part of it.
    pub(super) fn is_overdue(&self, now_ms: u64) -> bool {
        self.started_by_ms.is_some_and(|by_ms| by_ms <= now_ms)
    }

    /// PHP has started.
    pub(super) fn succeeded(&mut self, boot: BootReport) {
        debug_assert!(self.is_under_way(), "no start is under way");
        self.boot = boot;
        self.started_by_ms = None;
    }

    /// PHP has not started.
    pub(super) fn failed(&mut self, why: String) {
        self.failure = Some(why);
        self.started_by_ms = None;
    }

    /// Stores output of the zygote while it starts.
    pub(super) fn record_output(&mut self, bytes: &[u8]) {
        if self.is_under_way() {
            self.startup_output.record(bytes);
        }
    }

    pub(super) fn startup_output(&self) -> &StartupOutput {
        &self.startup_output
    }

    /// The pipe of the zygote's output, to read the rest after a failure.
    pub(super) fn take_output(&mut self) -> Option<OwnedFd> {
        self.zygote_output.take()
    }

    /// Whether a fork is permitted; after crashes and failed starts it is not for some time.
    pub(super) fn may_fork(&self, now_ms: u64) -> bool {
        self.backoff.may_start(now_ms)
    }

    /// A worker became ready or finished a request.
    pub(super) fn record_success(&mut self) {
        self.failure = None;
        self.backoff.served();
    }

    /// A worker has died while it served.
    pub(super) fn record_crash(&mut self, now_ms: u64) {
        self.backoff.crashed(now_ms);
    }

    /// A worker or the zygote could not be started; returns for how long nothing is started.
    pub(super) fn record_failed_start(&mut self, now_ms: u64) -> u64 {
        self.backoff.failed_to_start(now_ms)
    }

    #[cfg(test)]
    pub(super) fn set_started(&mut self) {
        self.started_by_ms = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_belongs_to_a_start_until_its_result_is_known() {
        let mut start = PhpStart::new();
        start.record_output(b"before");
        assert!(start.startup_output().is_empty() && !start.is_overdue(9));
        start.begin(10, None);
        start.record_output(b"during");
        assert!(start.is_under_way() && !start.is_overdue(9) && start.is_overdue(10));
        start.failed("no".to_owned());
        start.record_output(b" after");
        assert_eq!(start.startup_output().explain("no"), "no: during");
        assert!(!start.is_under_way());
    }

    #[test]
    fn a_failed_start_forbids_forks_for_some_time() {
        let mut start = PhpStart::new();
        assert!(start.may_fork(1));
        let wait_ms = start.record_failed_start(1);
        assert!(!start.may_fork(wait_ms) && start.may_fork(1 + wait_ms));
        start.failed("no".to_owned());
        start.record_success();
        assert!(start.failure.is_none());
    }
}
