//! Counters of a worker's rewinds, in shared memory.
//!
//! Written by the worker, read by the gateway for `outboard status`. No decision depends on these numbers.
//! Invariant: they are at the same place in both programs.

use crate::sync::{AtomicU64, Ordering};

#[cfg(not(loom))]
const _: () =
    assert!(size_of::<RewindCounter>() == 24, "another layout is another version of the mapping");

/// What rewinds have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewinds {
    /// Requests that were undone.
    pub count: u64,
    /// The time for all of them, in µs.
    pub us: u64,
    /// The pages that were copied back.
    pub pages: u64,
}

impl Rewinds {
    /// Adds those of another worker. The numbers come from workers, and may be any.
    pub fn add(&mut self, more: Self) {
        self.count = self.count.saturating_add(more.count);
        self.us = self.us.saturating_add(more.us);
        self.pages = self.pages.saturating_add(more.pages);
    }
}

/// The counters of one worker, in shared memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RewindCounter {
    count: AtomicU64,
    us: AtomicU64,
    pages: AtomicU64,
}

impl RewindCounter {
    /// The values, which the worker can set to anything.
    pub(crate) fn read(&self) -> Rewinds {
        Rewinds {
            count: self.count.load(Ordering::Relaxed),
            us: self.us.load(Ordering::Relaxed),
            pages: self.pages.load(Ordering::Relaxed),
        }
    }

    /// Counts one.
    pub(crate) fn count(&self, us: u64, pages: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.us.fetch_add(us, Ordering::Relaxed);
        self.pages.fetch_add(pages, Ordering::Relaxed);
    }
}
