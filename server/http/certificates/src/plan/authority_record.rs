//! [`AuthorityRecord`]: the orders at an authority, and its failures.

use super::limits::{Limits, MINUTE, ORDERS_PERIOD, Time, forget, free_s};
use super::retry::delay_s;
use serde::{Deserialize, Serialize};

/// The pauses after failures of the authority itself, in seconds.
const PAUSES_S: [u64; 5] = [5, 15, MINUTE, 5 * MINUTE, 15 * MINUTE];

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AuthorityRecord {
    /// When orders were placed.
    orders: Vec<Time>,
    /// Failures since its last response.
    failures: u32,
    failed_s: Time,
    /// It has requested a pause until then.
    pause_s: Time,
}

impl AuthorityRecord {
    /// The time from which it accepts an order.
    pub(crate) fn usable_s(&self, url: &str, limits: Limits) -> Time {
        free_s(&self.orders, limits.orders, ORDERS_PERIOD).max(self.responding_s(url))
    }

    /// The time from which it is expected to respond.
    pub(crate) fn responding_s(&self, url: &str) -> Time {
        let retry_s = match self.failures {
            0 => 0,
            failures => self.failed_s + delay_s(&PAUSES_S, failures, url),
        };
        retry_s.max(self.pause_s)
    }

    /// An order is about to be placed.
    pub(crate) fn ordered(&mut self, now_s: Time) {
        self.correct(now_s);
        self.orders.push(now_s);
    }

    /// It has responded.
    pub(crate) fn responded(&mut self) {
        self.failures = 0;
    }

    /// It could not be reached, or its response was an error of its own.
    pub(crate) fn failed(&mut self, now_s: Time) {
        // Names that were under way together fail together.
        if now_s > self.failed_s || self.failures == 0 {
            self.failures = self.failures.saturating_add(1);
        }
        self.failed_s = now_s;
    }

    /// It requests a pause.
    pub(crate) fn pause(&mut self, now_s: Time, seconds: u64) {
        self.pause_s = self.pause_s.max(now_s + seconds);
    }

    /// Forgets what is over, and corrects times after a change of the clock.
    pub(crate) fn correct(&mut self, now_s: Time) {
        forget(&mut self.orders, now_s, ORDERS_PERIOD);
        self.failed_s = self.failed_s.min(now_s);
        self.pause_s = self.pause_s.min(now_s + MAX_PAUSE_S);
    }

    #[cfg(test)]
    pub(crate) fn orders(&self) -> &[Time] {
        &self.orders
    }
}

/// The longest pause for all names. One name can have a longer one.
const MAX_PAUSE_S: u64 = 15 * MINUTE;
