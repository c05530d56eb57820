//! [`Health`]: whether a server is up, from failed requests, checks and the administrator.
//!
//! Read for each choice, changed by the outcomes of requests and checks. Invariants: what a choice reads is
//! two atomics; a server that is down by its checks comes back by them alone; of the requests to an ejected
//! server only one is a trial at a time.

use outboard_config::{HealthCheck, UpstreamGroup};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A server that is down by its checks.
const DOWN: u64 = u64::MAX;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// 0: up. [`DOWN`]: down. Otherwise it is ejected, and a trial is due from then on.
    out_until_ms: AtomicU64,
    /// When it came back; 0 if it was never down.
    up_since_ms: AtomicU64,
    is_drained: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    fails: u32,
    fails_since_ms: u64,
    ejected_at_ms: u64,
    checks_failed: u32,
    checks_passed: u32,
}

/// What a server can be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Requests.
    Up,
    /// A single request, to find out.
    TrialDue,
    /// Requests only if no other server is left.
    Ejected,
    /// Nothing: its checks fail.
    Down,
    /// Nothing: the administrator has drained it.
    Drained,
}

impl State {
    /// A stable word for status and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::TrialDue | Self::Ejected => "ejected",
            Self::Down => "down",
            Self::Drained => "drained",
        }
    }
}

/// A change that the log reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Requests have failed.
    Ejected,
    /// Checks have failed.
    Down,
    /// It is up again.
    Up,
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self, now_ms: u64) -> State {
        if self.is_drained.load(Ordering::Relaxed) {
            return State::Drained;
        }
        match self.out_until_ms.load(Ordering::Acquire) {
            0 => State::Up,
            DOWN => State::Down,
            until_ms if until_ms <= now_ms => State::TrialDue,
            _ => State::Ejected,
        }
    }

    /// Takes the trial that is due. False if another request was faster.
    pub(crate) fn try_out(&self, now_ms: u64, fail_timeout_ms: u64) -> bool {
        let due_ms = self.out_until_ms.load(Ordering::Acquire);
        let next_ms = now_ms + fail_timeout_ms;
        (1..=now_ms).contains(&due_ms)
            && self
                .out_until_ms
                .compare_exchange(due_ms, next_ms, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// When the ejection ends.
    pub(crate) fn out_until_ms(&self) -> u64 {
        self.out_until_ms.load(Ordering::Relaxed)
    }

    /// A request has failed.
    pub(crate) fn failed(&self, rules: &UpstreamGroup, now_ms: u64) -> Option<Change> {
        let most = rules.max_fails?;
        let mut record = self.lock();
        if now_ms >= record.fails_since_ms + rules.fail_window_ms {
            (record.fails_since_ms, record.fails) = (now_ms, 0);
        }
        record.fails += 1;
        let out_until_ms = self.out_until_ms.load(Ordering::Acquire);
        let is_trial = out_until_ms != 0;
        if out_until_ms == DOWN || (record.fails < most && !is_trial) {
            return None;
        }
        record.ejected_at_ms = now_ms;
        self.out_until_ms.store(now_ms + rules.fail_timeout_ms, Ordering::Release);
        (!is_trial).then_some(Change::Ejected)
    }

    /// A request that was sent at `sent_ms` has succeeded.
    pub(crate) fn succeeded(&self, sent_ms: u64, now_ms: u64) -> Option<Change> {
        let out_until_ms = self.out_until_ms.load(Ordering::Acquire);
        if matches!(out_until_ms, 0 | DOWN) {
            return None;
        }
        let mut record = self.lock();
        // An older request shows nothing of the server since.
        let shows = sent_ms >= record.ejected_at_ms;
        let out_until_ms = self.out_until_ms.load(Ordering::Acquire);
        (shows && !matches!(out_until_ms, 0 | DOWN)).then(|| self.recover(&mut record, now_ms))
    }

    /// A check has passed or failed.
    pub(crate) fn checked(&self, passed: bool, rules: &HealthCheck, now_ms: u64) -> Option<Change> {
        let mut record = self.lock();
        let is_down = self.out_until_ms.load(Ordering::Acquire) == DOWN;
        if passed {
            record.checks_failed = 0;
            record.checks_passed = record.checks_passed.saturating_add(1);
            let is_enough = record.checks_passed >= rules.healthy;
            // A check can be the trial of an ejected server.
            let is_due = is_down || self.state(now_ms) == State::TrialDue;
            return (is_due && is_enough).then(|| self.recover(&mut record, now_ms));
        }
        record.checks_passed = 0;
        record.checks_failed = record.checks_failed.saturating_add(1);
        if is_down || record.checks_failed < rules.unhealthy {
            return None;
        }
        self.out_until_ms.store(DOWN, Ordering::Release);
        Some(Change::Down)
    }

    /// It is not checked any more.
    pub(crate) fn forget_checks(&self) {
        let mut record = self.lock();
        if self.out_until_ms.load(Ordering::Acquire) == DOWN {
            (record.checks_failed, record.checks_passed) = (0, 0);
            self.out_until_ms.store(0, Ordering::Release);
        }
    }

    fn recover(&self, record: &mut Record, now_ms: u64) -> Change {
        record.fails = 0;
        self.up_since_ms.store(now_ms, Ordering::Relaxed);
        self.out_until_ms.store(0, Ordering::Release);
        Change::Up
    }

    /// No new requests, or again some.
    pub(crate) fn set_drained(&self, is_drained: bool) -> bool {
        self.is_drained.swap(is_drained, Ordering::Relaxed)
    }

    /// The share of its weight that a server has after it was down, in percent.
    pub(crate) fn share(&self, slow_start_ms: u64, now_ms: u64) -> u64 {
        let up_since_ms = self.up_since_ms.load(Ordering::Relaxed);
        if up_since_ms == 0 || slow_start_ms == 0 {
            return 100;
        }
        let up_ms = now_ms.saturating_sub(up_since_ms);
        (up_ms.saturating_mul(100) / slow_start_ms).clamp(1, 100)
    }
}

#[cfg(test)]
mod tests;
