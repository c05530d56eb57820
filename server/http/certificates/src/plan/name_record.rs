//! [`NameRecord`]: the orders and failures of a name, as they are stored.

use super::limits::{
    DAY, FAILED_CHECKS, FAILED_CHECKS_PERIOD, HOUR, Limits, MINUTE, NAME_PERIOD, Time, forget,
    free_s,
};
use super::renewal::Window;
use super::retry::delay_s;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The pauses after failures, in seconds.
const PAUSES_S: [u64; 7] = [MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 3 * HOUR, 8 * HOUR, DAY];
/// The longest pause that an authority can request.
const MAX_PAUSE_S: u64 = 7 * DAY;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NameRecord {
    /// When orders were placed.
    orders: Vec<Time>,
    /// When authorities could not verify the name.
    failed_checks: Vec<Time>,
    /// Failures since the last certificate.
    pub(crate) failures: u32,
    failed_s: Time,
    /// The last failure, in one sentence.
    pub(crate) error: Option<String>,
    /// Authorities that have requested a pause for the name, and until when.
    paused: BTreeMap<String, Time>,
    /// An order that was placed and is not complete.
    pub(crate) order: Option<OpenOrder>,
    /// The URL of the authority that issued the certificate.
    pub(crate) authority: Option<String>,
    /// When the authority recommends to renew it.
    pub(crate) window: Option<Window>,
}

/// An order that was placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenOrder {
    /// The URL of the authority's directory.
    pub(crate) authority: String,
    /// The URL of the order.
    pub(crate) url: String,
    /// The key of the certificate, in PEM.
    pub(crate) key: String,
}

impl NameRecord {
    /// The time from which another attempt is made after failures.
    pub(super) fn retry_s(&self, name: &str) -> Time {
        let pause_s = match self.failures {
            0 => 0,
            failures => self.failed_s + delay_s(&PAUSES_S, failures, name),
        };
        pause_s.max(free_s(&self.failed_checks, FAILED_CHECKS, FAILED_CHECKS_PERIOD))
    }

    /// The time from which another order is within the limit.
    pub(super) fn may_order_s(&self, limits: Limits) -> Time {
        free_s(&self.orders, limits.orders_per_name, NAME_PERIOD)
    }

    /// Whether another order is within the limit.
    pub(crate) fn may_order(&self, now_s: Time, limits: Limits) -> bool {
        self.may_order_s(limits) <= now_s
    }

    /// The time from which an authority accepts an order for the name.
    pub(crate) fn paused_s(&self, authority: &str) -> Time {
        self.paused.get(authority).copied().unwrap_or(0)
    }

    /// An order is about to be placed.
    pub(crate) fn ordered(&mut self, now_s: Time) {
        self.correct(now_s);
        self.orders.push(now_s);
    }

    /// Counts the orders of other gateways, too.
    pub(crate) fn merge(&mut self, other: &NameRecord) {
        self.orders.extend(&other.orders);
        self.orders.sort_unstable();
        self.orders.dedup();
    }

    /// An authority could not verify the name.
    pub(crate) fn check_failed(&mut self, now_s: Time) {
        self.failed_checks.push(now_s);
    }

    /// All authorities have failed.
    pub(crate) fn failed(&mut self, now_s: Time, error: String) {
        self.failures = self.failures.saturating_add(1);
        self.failed_s = now_s;
        self.error = Some(error);
    }

    /// An authority requests a pause.
    pub(crate) fn pause(&mut self, now_s: Time, authority: &str, seconds: u64) {
        self.paused.insert(authority.to_owned(), now_s + seconds);
    }

    /// There is a new certificate.
    pub(crate) fn issued(&mut self, authority: &str) {
        self.order = None;
        self.window = None;
        self.failures = 0;
        self.error = None;
        self.failed_checks.clear();
        self.authority = Some(authority.to_owned());
    }

    /// Forgets what is over, and corrects times after a change of the clock.
    pub(crate) fn correct(&mut self, now_s: Time) {
        forget(&mut self.orders, now_s, NAME_PERIOD);
        forget(&mut self.failed_checks, now_s, FAILED_CHECKS_PERIOD);
        self.failed_s = self.failed_s.min(now_s);
        self.paused.retain(|_, until_s| {
            *until_s = (*until_s).min(now_s + MAX_PAUSE_S);
            now_s < *until_s
        });
    }

    #[cfg(test)]
    pub(crate) fn orders(&self) -> &[Time] {
        &self.orders
    }
}
