//! Crash loops: while each request of an app kills its worker, requests are refused for increasing
//! pauses instead of costing a fork each.
//!
//! The pools of an app on all threads have one, and report each crash and each finished request.
//! Invariants: a finished request ends a crash
//! loop; between two pauses at least one request is tried; the log has one line at the beginning and
//! one at the end.

use super::Pool;
use outboard_log::{Level, Reason};
use outboard_reactor::now_ms;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of consecutive crashes that are a crash loop.
const CRASHES_IN_A_ROW: u32 = 20;
/// The first pause; each is twice the one before.
const FIRST_PAUSE_MS: u64 = 100;
const MAX_PAUSE_MS: u64 = 5_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CrashLoop {
    /// Crashes since the last response.
    crashes: AtomicU32,
    /// The end of the pause.
    paused_until_ms: AtomicU64,
}

impl CrashLoop {
    /// Whether the app is in a crash loop.
    pub(super) fn is_active(&self) -> bool {
        self.crashes() >= CRASHES_IN_A_ROW
    }

    fn crashes(&self) -> u32 {
        self.crashes.load(Ordering::Relaxed)
    }

    fn paused_until_ms(&self) -> u64 {
        self.paused_until_ms.load(Ordering::Relaxed)
    }

    /// Counts a crash. Returns the pause that begins, if one does.
    fn crashed(&self, now_ms: u64) -> Option<u64> {
        if now_ms < self.paused_until_ms() {
            // The request was assigned before the pause.
            return None;
        }
        let crashes = self.crashes.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let beyond = crashes.checked_sub(CRASHES_IN_A_ROW)?;
        let pause_ms = (FIRST_PAUSE_MS << beyond.min(16)).min(MAX_PAUSE_MS);
        self.paused_until_ms.store(now_ms.saturating_add(pause_ms), Ordering::Relaxed);
        Some(pause_ms)
    }
}

impl Pool {
    /// Whether requests are refused now.
    pub(super) fn is_refusing(&self) -> bool {
        let until_ms = self.crash_loop().paused_until_ms();
        until_ms != 0 && now_ms() < until_ms
    }

    /// A request has killed its worker.
    pub(super) fn record_crash(&self) {
        let Some(pause_ms) = self.crash_loop().crashed(now_ms()) else { return };
        if self.crash_loop().crashes() == CRASHES_IN_A_ROW {
            let text = format!(
                "each of the last {CRASHES_IN_A_ROW} requests has killed its worker: requests are \
                 refused for {pause_ms} ms, and after each further crash for longer, up to \
                 {MAX_PAUSE_MS} ms, until one succeeds"
            );
            self.log(Level::Error, &text);
        }
        self.fail_queue(Reason::AppDown);
    }

    /// Counts a finished request.
    pub(super) fn record_response(&self) {
        let crash_loop = self.crash_loop();
        if crash_loop.crashes() == 0 {
            return;
        }
        let was_active = crash_loop.is_active();
        crash_loop.crashes.store(0, Ordering::Relaxed);
        crash_loop.paused_until_ms.store(0, Ordering::Relaxed);
        if was_active {
            self.log(Level::Info, "a request has succeeded: none are refused any more");
        }
    }

    pub(super) fn crash_loop(&self) -> &CrashLoop {
        self.shard.crash_loop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_once_every_request_crashes_and_end_with_an_answer() {
        let crash_loop = CrashLoop::default();
        let mut now_ms = 1_000;
        for _ in 1..CRASHES_IN_A_ROW {
            assert_eq!(crash_loop.crashed(now_ms), None);
        }
        for pause_ms in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            assert_eq!(crash_loop.crashed(now_ms), Some(pause_ms));
            assert_eq!(crash_loop.crashed(now_ms), None, "assigned before the pause");
            assert!(crash_loop.is_active());
            now_ms += pause_ms;
        }
    }
}
