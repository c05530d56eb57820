//! When a certificate is renewed: in the window that its authority recommends (RFC 9773), or when a third
//! of its lifetime is left.

use super::limits::{DAY, HOUR, MINUTE, Time};
use super::retry::{FRACTIONS, fraction};
use serde::{Deserialize, Serialize};

/// The validity of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before_s: Time,
    pub(crate) not_after_s: Time,
}

/// A recommended time of renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    pub(crate) start_s: Time,
    pub(crate) end_s: Time,
    /// When to request the recommendation again.
    pub(crate) again_s: Time,
}

/// A certificate for less is renewed when half of its lifetime is left.
const SHORT_LIFETIME_S: u64 = 10 * DAY;
/// Bounds of the time until a recommendation is requested again (RFC 9773 4.3.2).
const AGAIN_MIN_S: u64 = MINUTE;
const AGAIN_MAX_S: u64 = DAY;
/// If the authority sets no time.
const AGAIN_S: u64 = 6 * HOUR;

impl Window {
    /// A recommendation that was received with this `Retry-After`.
    pub(crate) fn new(
        now_s: Time,
        (start_s, end_s): (Time, Time),
        retry_after_s: Option<u64>,
    ) -> Self {
        let pause_s = retry_after_s.unwrap_or(AGAIN_S).clamp(AGAIN_MIN_S, AGAIN_MAX_S);
        Self { start_s, end_s: end_s.max(start_s), again_s: now_s + pause_s }
    }

    /// The authority has no recommendation.
    pub(crate) fn none(now_s: Time) -> Self {
        Self { start_s: Time::MAX, end_s: Time::MAX, again_s: now_s + AGAIN_MAX_S / 2 }
    }

    /// The same, to be requested again after the usual pause.
    pub(crate) fn again(self, now_s: Time) -> Self {
        Self { again_s: now_s + AGAIN_S, ..self }
    }

    fn is_none(&self) -> bool {
        self.start_s == Time::MAX
    }

    /// Whether to request the recommendation again, also after the clock was set back.
    pub(crate) fn is_old(&self, now_s: Time) -> bool {
        now_s >= self.again_s || self.again_s > now_s + AGAIN_MAX_S
    }
}

/// When the certificate is renewed. Names have different times within a window, and somewhat different ones
/// without.
pub(crate) fn due_s(name: &str, validity: &Validity, window: Option<&Window>) -> Time {
    let lifetime_s = validity.not_after_s.saturating_sub(validity.not_before_s);
    let own_s = {
        let left_s = if lifetime_s < SHORT_LIFETIME_S { lifetime_s / 2 } else { lifetime_s / 3 };
        let earlier_s = left_s * fraction(name) / FRACTIONS / 20;
        validity.not_after_s.saturating_sub(left_s + earlier_s)
    };
    let Some(window) = window.filter(|window| !window.is_none()) else { return own_s };
    let span_s = window.end_s - window.start_s;
    let part_s = (u128::from(span_s) * u128::from(fraction(name)) / u128::from(FRACTIONS)) as u64;
    let at_s = window.start_s.saturating_add(part_s);
    // A window beyond the end would leave the name without a valid certificate.
    let latest_s = validity.not_after_s.saturating_sub(lifetime_s / 20);
    at_s.min(latest_s)
}
