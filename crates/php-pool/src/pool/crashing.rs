//! An app whose every request kills its worker: it is given pauses instead of a fork per request.
//!
//! Told of each crash and each finished request. Invariants: one request that is answered makes all
//! well again; between two pauses at least one request is tried; the log has one line about it, and
//! one when it is over.

use super::Pool;
use outboard_log::Level;
use outboard_log::Reason;
use outboard_reactor::now_ms;
use std::cell::Cell;

/// So many requests in a row have to have killed their workers.
const CRASHES_IN_A_ROW: u32 = 20;
/// The first pause; each is twice the one before.
const FIRST_PAUSE_MS: u64 = 100;
const LONGEST_PAUSE_MS: u64 = 5_000;

/// How long it has gone wrong.
#[derive(Debug, Default)]
pub(super) struct Crashing {
    /// Requests since one was answered.
    in_a_row: Cell<u32>,
    /// Until then none is tried.
    until_ms: Cell<u64>,
}

impl Crashing {
    /// Whether there are pauses.
    pub(super) fn is_loop(&self) -> bool {
        self.in_a_row.get() >= CRASHES_IN_A_ROW
    }

    /// A request has killed its worker. The pause that follows, if it does.
    fn crashed(&self, now_ms: u64) -> Option<u64> {
        if now_ms < self.until_ms.get() {
            // It was given out before the pause began.
            return None;
        }
        self.in_a_row.set(self.in_a_row.get().saturating_add(1));
        let beyond = self.in_a_row.get().checked_sub(CRASHES_IN_A_ROW)?;
        let pause_ms = (FIRST_PAUSE_MS << beyond.min(16)).min(LONGEST_PAUSE_MS);
        self.until_ms.set(now_ms.saturating_add(pause_ms));
        Some(pause_ms)
    }
}

impl Pool {
    /// Whether requests are refused at present.
    pub(super) fn refuses(&self) -> bool {
        let until_ms = self.crashing.until_ms.get();
        until_ms != 0 && now_ms() < until_ms
    }

    /// A request has killed its worker.
    pub(super) fn note_crash(&self) {
        let Some(pause_ms) = self.crashing.crashed(now_ms()) else { return };
        if self.crashing.in_a_row.get() == CRASHES_IN_A_ROW {
            let text = format!(
                "each of the last {CRASHES_IN_A_ROW} requests has killed its worker: requests are \
                 refused for {pause_ms} ms, and after each further one for longer, up to \
                 {LONGEST_PAUSE_MS} ms, until one is answered"
            );
            self.say(Level::Error, &text);
        }
        self.fail_queue(Reason::AppDown);
    }

    /// A request was answered.
    pub(super) fn note_answer(&self) {
        if self.crashing.in_a_row.get() == 0 {
            return;
        }
        if self.crashing.is_loop() {
            self.say(Level::Info, "a request was answered again: none is refused any more");
        }
        self.crashing.in_a_row.set(0);
        self.crashing.until_ms.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_once_every_request_crashes_and_end_with_an_answer() {
        let crashing = Crashing::default();
        let mut now_ms = 1_000;
        for _ in 1..CRASHES_IN_A_ROW {
            assert_eq!(crashing.crashed(now_ms), None);
        }
        for pause_ms in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            assert_eq!(crashing.crashed(now_ms), Some(pause_ms));
            assert_eq!(crashing.crashed(now_ms), None, "given out before the pause");
            assert!(crashing.is_loop());
            now_ms += pause_ms;
        }
    }
}
