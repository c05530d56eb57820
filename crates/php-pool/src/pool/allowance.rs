//! How much a PHP process may write into the log: so many lines and bytes a second.
//!
//! A token bucket that a worker's pipe and its ring share; forks that answer one request share
//! their pool's. Invariants: over any time no more is let through than twice a second's worth and
//! the rate times that time; what is dropped is counted, and the count is told.

use outboard_reactor::now_ms;
use std::cell::RefCell;

/// The rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogRate {
    /// Lines a second.
    pub(crate) lines: u32,
    /// Bytes a second.
    pub(crate) bytes: u64,
}

/// What was not written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    lines: u64,
    bytes: u64,
}

/// The bucket.
#[derive(Debug)]
pub(crate) struct Allowance {
    rate: LogRate,
    level: RefCell<Level>,
}

/// How full it is, in thousandths of a line and of a byte.
#[derive(Debug)]
struct Level {
    lines: i64,
    /// Below zero after a line that was longer than what there was.
    bytes: i64,
    at_ms: u64,
    /// Once empty, it stays shut until it has a second's worth: the log then has whole stretches
    /// of what was printed, and one line for each gap.
    is_shut: bool,
    dropped: Dropped,
}

/// Tokens for so many seconds fit.
const SECONDS: u64 = 2;
/// Tokens are counted in thousandths, so that each millisecond adds to them.
const WHOLE: i64 = 1000;

impl Allowance {
    pub(crate) fn new(rate: LogRate) -> Self {
        let (lines, bytes) = rate.worth(SECONDS * 1000);
        let level =
            Level { lines, bytes, at_ms: now_ms(), is_shut: false, dropped: Dropped::default() };
        Self { rate, level: RefCell::new(level) }
    }

    /// Whether a line of this length may be written; it is counted either way.
    pub(crate) fn admit(&self, len: usize) -> bool {
        self.admit_at(len, now_ms())
    }

    fn admit_at(&self, len: usize, now_ms: u64) -> bool {
        let mut level = self.level.borrow_mut();
        level.refill(self.rate, now_ms);
        let is_empty = level.lines < WHOLE || level.bytes <= 0;
        if level.is_shut || is_empty {
            level.is_shut = true;
            level.dropped.lines += 1;
            level.dropped.bytes = level.dropped.bytes.saturating_add(len as u64);
            return false;
        }
        level.lines -= WHOLE;
        level.bytes = level.bytes.saturating_sub(whole(len as u64).saturating_mul(WHOLE));
        true
    }

    /// Whether everything is dropped at present.
    pub(crate) fn is_shut(&self) -> bool {
        let mut level = self.level.borrow_mut();
        level.is_shut && {
            level.refill(self.rate, now_ms());
            level.is_shut
        }
    }

    /// What was dropped and not yet told, once that is over.
    pub(crate) fn take_dropped(&self) -> Option<Dropped> {
        if self.is_shut() { None } else { self.take_all_dropped() }
    }

    /// What was dropped and not yet told.
    pub(crate) fn take_all_dropped(&self) -> Option<Dropped> {
        let dropped = std::mem::take(&mut self.level.borrow_mut().dropped);
        (dropped.lines > 0).then_some(dropped)
    }

    /// The line that tells of it.
    pub(crate) fn tell(&self, dropped: Dropped) -> String {
        format!(
            "{} lines ({} bytes) were dropped here: more than [log.error] lines_per_second = {} or \
             bytes_per_second = {} allows",
            dropped.lines, dropped.bytes, self.rate.lines, self.rate.bytes
        )
    }
}

impl LogRate {
    /// Thousandths of lines and bytes for so many milliseconds.
    fn worth(self, ms: u64) -> (i64, i64) {
        let (lines, bytes) = (whole(self.lines.into()), whole(self.bytes));
        (lines.saturating_mul(whole(ms)), bytes.saturating_mul(whole(ms)))
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Level {
    fn refill(&mut self, rate: LogRate, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        if elapsed_ms == 0 {
            return;
        }
        self.at_ms = now_ms;
        let (more, most) = (rate.worth(elapsed_ms), rate.worth(SECONDS * 1000));
        self.lines = self.lines.saturating_add(more.0).min(most.0);
        self.bytes = self.bytes.saturating_add(more.1).min(most.1);
        let enough = rate.worth(1000);
        self.is_shut &= self.lines < enough.0 || self.bytes < enough.1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(rate: LogRate) -> Level {
        let (lines, bytes) = rate.worth(SECONDS * 1000);
        Level { lines, bytes, at_ms: 0, is_shut: false, dropped: Dropped::default() }
    }

    /// Offers so many lines each millisecond for ten seconds; how many of them are written.
    fn written(rate: LogRate, lines_a_ms: usize, len: usize) -> usize {
        let allowance = Allowance { rate, level: RefCell::new(level(rate)) };
        let mut written = 0;
        for now_ms in 1..=10_000 {
            written += (0..lines_a_ms).filter(|_| allowance.admit_at(len, now_ms)).count();
        }
        written
    }

    #[test]
    fn what_is_written_in_ten_seconds_is_twelve_seconds_worth_at_most() {
        let rate = LogRate { lines: 100, bytes: 10_000 };
        for (lines_a_ms, len, bound) in [(10, 1, 1200), (1, 1_000, 130), (3, 0, 1200)] {
            let written = written(rate, lines_a_ms, len);
            assert!(written <= bound && written >= bound / 2, "{written} of {bound}");
        }
    }

    #[test]
    fn who_stays_below_the_rate_loses_nothing() {
        let rate = LogRate { lines: 1000, bytes: 1 << 20 };
        assert_eq!(written(rate, 1, 100), 10_000);
    }

    #[test]
    fn a_line_longer_than_the_bucket_is_written_when_it_is_full() {
        let allowance = Allowance {
            rate: LogRate { lines: 1, bytes: 1 },
            level: RefCell::new(level(LogRate { lines: 1, bytes: 1 })),
        };
        assert!(allowance.admit_at(100_000, 0));
        assert!(!allowance.admit_at(1, 0));
        assert_eq!(allowance.take_all_dropped(), Some(Dropped { lines: 1, bytes: 1 }));
        assert_eq!(allowance.take_all_dropped(), None);
    }
}
