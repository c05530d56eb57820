//! Crash loops: while each request of an app kills its worker, requests are refused for increasing
//! pauses instead of costing a fork each.
//!
//! The pools of an app on all threads have one, and report each crash and each finished request.
//! Invariants: a finished request ends a crash
//! loop; between two pauses at least one request is tried; the log has one line at the beginning and
//! one at the end.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of consecutive crashes that are a crash loop.
const CRASHES_IN_A_ROW: u32 = 20;
/// The first pause; each is twice the one before.
const FIRST_PAUSE_MS: u64 = 100;
const MAX_PAUSE_MS: u64 = 5_000;
const MAX_DOUBLINGS: u32 = 16;
const _: () =
    assert!(FIRST_PAUSE_MS << MAX_DOUBLINGS >= MAX_PAUSE_MS, "pauses grow up to the longest");

/// See the module.
#[derive(Debug, Default)]
pub(in crate::pool) struct CrashLoop {
    /// Crashes since the last response.
    crashes: AtomicU32,
    /// The end of the pause.
    paused_until_ms: AtomicU64,
}

impl CrashLoop {
    /// Whether the app is in a crash loop.
    pub(in crate::pool) fn is_active(&self) -> bool {
        self.crashes() >= CRASHES_IN_A_ROW
    }

    fn crashes(&self) -> u32 {
        self.crashes.load(Ordering::Relaxed)
    }

    fn paused_until_ms(&self) -> u64 {
        self.paused_until_ms.load(Ordering::Relaxed)
    }

    /// Whether requests are refused now.
    pub(in crate::pool) fn is_paused(&self, now_ms: impl FnOnce() -> u64) -> bool {
        let until_ms = self.paused_until_ms();
        until_ms != 0 && now_ms() < until_ms
    }

    /// A request has killed its worker. Returns the pause that begins, if one does.
    pub(in crate::pool) fn crashed(&self, now_ms: u64) -> Option<Pause> {
        if now_ms < self.paused_until_ms() {
            // The request was assigned before the pause.
            return None;
        }
        let crashes = self.crashes.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let beyond = crashes.checked_sub(CRASHES_IN_A_ROW)?;
        let ms = (FIRST_PAUSE_MS << beyond.min(MAX_DOUBLINGS)).min(MAX_PAUSE_MS);
        self.paused_until_ms.store(now_ms.saturating_add(ms), Ordering::Relaxed);
        Some(Pause { ms, is_first: beyond == 0 })
    }

    /// A request was finished. Returns whether that ends a crash loop.
    pub(in crate::pool) fn succeeded(&self) -> bool {
        if self.crashes() == 0 {
            return false;
        }
        let was_active = self.is_active();
        self.crashes.store(0, Ordering::Relaxed);
        self.paused_until_ms.store(0, Ordering::Relaxed);
        was_active
    }
}

/// A time in which requests are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pool) struct Pause {
    ms: u64,
    /// Whether the crash loop begins with it.
    pub(in crate::pool) is_first: bool,
}

impl Pause {
    /// For the log.
    pub(in crate::pool) fn describe(self) -> String {
        format!(
            "each of the last {CRASHES_IN_A_ROW} requests has killed its worker: requests are \
             refused for {} ms, and after each further crash for longer, up to {MAX_PAUSE_MS} ms, until one \
             succeeds",
            self.ms
        )
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
            assert_eq!(crash_loop.crashed(now_ms).map(|pause| pause.ms), Some(pause_ms));
            assert!(crash_loop.is_paused(|| now_ms));
            assert_eq!(crash_loop.crashed(now_ms), None, "assigned before the pause");
            assert!(crash_loop.is_active());
            now_ms += pause_ms;
            assert!(!crash_loop.is_paused(|| now_ms), "one request is tried");
        }
        assert!(crash_loop.succeeded() && !crash_loop.succeeded());
        assert_eq!(crash_loop.crashed(now_ms), None);
    }
}
