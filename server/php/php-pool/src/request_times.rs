//! [`RequestTimes`]: when a request to PHP was submitted, started and ended.
//!
//! Part of the exchange; written by the pool, read by what has submitted the request. Of a
//! request that was withdrawn and given to another worker, the last start counts.

use outboard_log::Wall;
use std::cell::Cell;

/// See the module. Microseconds since the epoch; 0: not yet.
#[derive(Debug)]
pub struct RequestTimes {
    submitted_us: u64,
    started_us: Cell<u64>,
    ended_us: Cell<u64>,
}

impl RequestTimes {
    pub(crate) fn begin() -> Self {
        let submitted_us = Wall::now().unix_us;
        Self { submitted_us, started_us: Cell::new(0), ended_us: Cell::new(0) }
    }

    /// A worker has it, and no other request before it.
    pub(crate) fn started(&self) {
        self.started_us.set(Wall::now().unix_us);
    }

    /// The response is complete or has failed.
    pub(crate) fn ended(&self) {
        if self.ended_us.get() == 0 {
            self.ended_us.set(Wall::now().unix_us);
        }
    }

    /// When it was submitted.
    pub fn submitted_us(&self) -> u64 {
        self.submitted_us
    }

    /// When a worker got it; `None`: never.
    pub fn started_us(&self) -> Option<u64> {
        Some(self.started_us.get()).filter(|us| *us > 0)
    }

    /// When its response ended; `None`: it did not.
    pub fn ended_us(&self) -> Option<u64> {
        Some(self.ended_us.get()).filter(|us| *us > 0)
    }
}
