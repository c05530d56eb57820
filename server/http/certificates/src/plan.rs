//! What happens to a name, and when: orders, renewals, retries and limits, as functions of the time.
//!
//! Called by the manager; no I/O, no clock. The time is in seconds since 1970 and may jump in both
//! directions. Invariants: no decision leads to more orders than the limits allow, because an order is
//! recorded before it is placed; a record from the future counts as one of now, so that a clock that was
//! wrong does not suspend a name for longer than the limits do.

mod authority_record;
mod limits;
mod name_record;
mod renewal;
mod retry;

pub(crate) use authority_record::AuthorityRecord;
pub(crate) use limits::{Limits, MINUTE, Time};
pub(crate) use name_record::{NameRecord, OpenOrder};
pub(crate) use renewal::{Validity, Window, due_s};

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

#[cfg(test)]
mod tests;
