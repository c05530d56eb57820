//! What happens to a name, and when: orders, renewals, retries and limits, as functions of the time.
//!
//! Called by the manager; no I/O, no clock. The time is in seconds since 1970 and may jump in both
//! directions. Invariants: no decision leads to more orders than the limits allow, because an order is
//! recorded before it is placed; a record from the future counts as one of now, so that a clock that was
//! wrong does not suspend a name for longer than the limits do.

mod authority_record;
mod name_record;
mod renewal;
mod retry;

pub(crate) use authority_record::AuthorityRecord;
pub(crate) use name_record::{NameRecord, OpenOrder};
pub(crate) use renewal::{Validity, Window, due_s};

/// Seconds since 1970.
pub(crate) type Time = u64;

pub(crate) const MINUTE: u64 = 60;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

/// The most orders and failures. Let's Encrypt permits 300 orders of an account in 3 hours, 5
/// certificates for the same names a week, and 5 failed checks of a name an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Orders at one authority in [`ORDERS_PERIOD`].
    pub(crate) orders: usize,
    /// Orders for one name in [`NAME_PERIOD`].
    pub(crate) orders_per_name: usize,
}

pub(crate) const ORDERS_PERIOD: u64 = 3 * HOUR;
pub(crate) const NAME_PERIOD: u64 = 7 * DAY;
const FAILED_CHECKS: usize = 5;
const FAILED_CHECKS_PERIOD: u64 = HOUR;

/// The next step for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Obtain a certificate now.
    Obtain,
    /// Nothing before this time.
    Wait(Time),
}

/// The next step. `usable_s` are the times from which the authorities accept orders.
pub(crate) fn next_step(
    now_s: Time,
    name: &str,
    certificate: Option<(&Validity, Option<&Window>)>,
    record: &NameRecord,
    usable_s: impl IntoIterator<Item = Time>,
    limits: Limits,
) -> Step {
    let due_s = certificate.map_or(0, |(validity, window)| due_s(name, validity, window));
    let retry_s = record.retry_s(name);
    let authority_s = usable_s.into_iter().min().unwrap_or(0);
    // An order that was placed before is completed, and does not count again.
    let order_s = if record.order.is_some() { 0 } else { record.may_order_s(limits) };
    match due_s.max(retry_s).max(authority_s).max(order_s) {
        at_s if at_s <= now_s => Step::Obtain,
        at_s => Step::Wait(at_s),
    }
}

/// The time from which one more event is within a limit. The events are in their order.
fn free_s(events: &[Time], limit: usize, period_s: u64) -> Time {
    match events.len().checked_sub(limit) {
        Some(first) => events.get(first).map_or(0, |at_s| at_s.saturating_add(period_s)),
        None => 0,
    }
}

/// Forgets events before the period, and corrects those after `now_s`.
fn forget(events: &mut Vec<Time>, now_s: Time, period_s: u64) {
    events.retain(|at_s| now_s < at_s.saturating_add(period_s));
    events.iter_mut().for_each(|at_s| *at_s = (*at_s).min(now_s));
}

#[cfg(test)]
mod tests;
