//! The number of lines and bytes per second that a PHP process may write to the log.
//!
//! A token bucket that a worker's pipe and its ring share. Invariants: in any period no more is admitted than two
//! seconds' tokens and the rate times the period; dropped lines are counted, and the count is logged.

use outboard_reactor::now_ms;
use std::cell::RefCell;

/// The rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogRate {
    /// Lines per second.
    pub(crate) lines: u32,
    /// Bytes per second.
    pub(crate) bytes: u64,
}

/// Lines that were not logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    lines: u64,
    bytes: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Allowance {
    rate: LogRate,
    bucket: RefCell<Bucket>,
}

/// Its tokens, in thousandths of a line and of a byte.
#[derive(Debug)]
struct Bucket {
    lines: i64,
    /// Negative after a line that was longer than there were tokens.
    bytes: i64,
    at_ms: u64,
    /// Once it is empty, lines are dropped until it has a second's tokens: the log then has contiguous
    /// pieces of the output, and one line for each gap.
    is_dropping: bool,
    dropped: Dropped,
}

/// The capacity of the bucket, in seconds' tokens.
const CAPACITY_SECONDS: u64 = 2;
/// Tokens are counted in thousandths, so that each millisecond adds some.
const TOKEN: i64 = 1000;

impl Allowance {
    pub(crate) fn new(rate: LogRate) -> Self {
        let (lines, bytes) = rate.tokens(CAPACITY_SECONDS * 1000);
        let bucket = Bucket {
            lines,
            bytes,
            at_ms: now_ms(),
            is_dropping: false,
            dropped: Dropped::default(),
        };
        Self { rate, bucket: RefCell::new(bucket) }
    }

    /// Whether a line of this length may be written; it is counted either way.
    pub(crate) fn admit(&self, len: usize) -> bool {
        self.admit_at(len, now_ms())
    }

    fn admit_at(&self, len: usize, now_ms: u64) -> bool {
        let mut bucket = self.bucket.borrow_mut();
        bucket.refill(self.rate, now_ms);
        let is_empty = bucket.lines < TOKEN || bucket.bytes <= 0;
        if bucket.is_dropping || is_empty {
            bucket.is_dropping = true;
            bucket.dropped.lines += 1;
            bucket.dropped.bytes = bucket.dropped.bytes.saturating_add(len as u64);
            return false;
        }
        bucket.lines -= TOKEN;
        bucket.bytes = bucket.bytes.saturating_sub(clamped(len as u64).saturating_mul(TOKEN));
        debug_assert!(bucket.lines >= 0, "a line is admitted for which there is no token");
        true
    }

    /// Whether everything is dropped at present.
    pub(crate) fn is_dropping(&self) -> bool {
        let mut bucket = self.bucket.borrow_mut();
        bucket.is_dropping && {
            bucket.refill(self.rate, now_ms());
            bucket.is_dropping
        }
    }

    /// Whether lines were dropped and not reported.
    pub(crate) fn has_dropped(&self) -> bool {
        self.bucket.borrow().dropped.lines > 0
    }

    /// Lines that were dropped and not reported, once none are dropped any more.
    pub(crate) fn take_dropped(&self) -> Option<Dropped> {
        if self.is_dropping() { None } else { self.take_all_dropped() }
    }

    /// Lines that were dropped and not reported.
    pub(crate) fn take_all_dropped(&self) -> Option<Dropped> {
        let dropped = std::mem::take(&mut self.bucket.borrow_mut().dropped);
        (dropped.lines > 0).then_some(dropped)
    }

    /// The line that reports them.
    pub(crate) fn describe_dropped(&self, dropped: Dropped) -> String {
        format!(
            "{} lines ({} bytes) were dropped here: more than [log.error] lines_per_second = {} or \
             bytes_per_second = {} allows",
            dropped.lines, dropped.bytes, self.rate.lines, self.rate.bytes
        )
    }
}

impl LogRate {
    /// The tokens of so many milliseconds.
    fn tokens(self, ms: u64) -> (i64, i64) {
        let (lines, bytes) = (clamped(self.lines.into()), clamped(self.bytes));
        (lines.saturating_mul(clamped(ms)), bytes.saturating_mul(clamped(ms)))
    }
}

fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Bucket {
    fn refill(&mut self, rate: LogRate, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        if elapsed_ms == 0 {
            return;
        }
        self.at_ms = now_ms;
        let (more, most) = (rate.tokens(elapsed_ms), rate.tokens(CAPACITY_SECONDS * 1000));
        self.lines = self.lines.saturating_add(more.0).min(most.0);
        self.bytes = self.bytes.saturating_add(more.1).min(most.1);
        let enough = rate.tokens(1000);
        self.is_dropping &= self.lines < enough.0 || self.bytes < enough.1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(rate: LogRate) -> Bucket {
        let (lines, bytes) = rate.tokens(CAPACITY_SECONDS * 1000);
        Bucket { lines, bytes, at_ms: 0, is_dropping: false, dropped: Dropped::default() }
    }

    /// Offers lines in each millisecond for ten seconds; returns how many are admitted.
    fn admitted(rate: LogRate, lines_per_ms: usize, len: usize) -> usize {
        let allowance = Allowance { rate, bucket: RefCell::new(bucket(rate)) };
        let mut admitted = 0;
        for now_ms in 1..=10_000 {
            admitted += (0..lines_per_ms).filter(|_| allowance.admit_at(len, now_ms)).count();
        }
        admitted
    }

    #[test]
    fn ten_seconds_admit_at_most_the_lines_of_twelve() {
        let rate = LogRate { lines: 100, bytes: 10_000 };
        for (lines_per_ms, len, bound) in [(10, 1, 1200), (1, 1_000, 130), (3, 0, 1200)] {
            let admitted = admitted(rate, lines_per_ms, len);
            assert!(admitted <= bound && admitted >= bound / 2, "{admitted} of {bound}");
        }
    }

    #[test]
    fn output_below_the_rate_is_complete() {
        let rate = LogRate { lines: 1000, bytes: 1 << 20 };
        assert_eq!(admitted(rate, 1, 100), 10_000);
    }

    #[test]
    fn a_line_longer_than_the_bucket_is_admitted_when_it_is_full() {
        let allowance = Allowance {
            rate: LogRate { lines: 1, bytes: 1 },
            bucket: RefCell::new(bucket(LogRate { lines: 1, bytes: 1 })),
        };
        assert!(allowance.admit_at(100_000, 0));
        assert!(!allowance.admit_at(1, 0));
        assert_eq!(allowance.take_all_dropped(), Some(Dropped { lines: 1, bytes: 1 }));
        assert_eq!(allowance.take_all_dropped(), None);
    }
}
