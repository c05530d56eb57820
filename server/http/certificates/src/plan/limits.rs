//! [`Limits`]: how many orders and failures there may be in a period.

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
pub(super) const FAILED_CHECKS: usize = 5;
pub(super) const FAILED_CHECKS_PERIOD: u64 = HOUR;

/// The time from which one more event is within a limit. The events are in their order.
pub(super) fn free_s(events: &[Time], limit: usize, period_s: u64) -> Time {
    match events.len().checked_sub(limit) {
        Some(first) => events.get(first).map_or(0, |at_s| at_s.saturating_add(period_s)),
        None => 0,
    }
}

/// Forgets events before the period, and corrects those after `now_s`.
pub(super) fn forget(events: &mut Vec<Time>, now_s: Time, period_s: u64) {
    events.retain(|at_s| now_s < at_s.saturating_add(period_s));
    events.iter_mut().for_each(|at_s| *at_s = (*at_s).min(now_s));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_event_is_free_once_the_oldest_is_past() {
        assert_eq!(free_s(&[], 2, DAY), 0);
        assert_eq!(free_s(&[10], 2, DAY), 0);
        assert_eq!(free_s(&[10, 20], 2, DAY), 10 + DAY);
        assert_eq!(free_s(&[10, 20, 30], 2, DAY), 20 + DAY);
    }

    #[test]
    fn events_of_the_future_count_as_of_now() {
        let mut events = vec![1, 50, 900];
        forget(&mut events, 100, 60);
        assert_eq!(events, [50, 100]);
    }
}
