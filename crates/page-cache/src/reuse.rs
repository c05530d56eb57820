//! Whether a stored response may answer a request (RFC 9111 4.2.4 and 5.2.1, RFC 5861).
//!
//! Called on every look-up that found something. Pure; the hot path of a hit.

use crate::directives::{RequestDirectives, SECONDS_MAX};
use crate::freshness::Freshness;

/// What to do with a stored response that matches a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Answer with it.
    Fresh {
        /// For the Age field, in seconds.
        age_s: u32,
        /// For how many more seconds it is fresh.
        remaining_s: i64,
    },
    /// Answer with it though it is stale.
    Stale {
        /// For the Age field, in seconds.
        age_s: u32,
        /// Since when it is stale, as a negative number of seconds.
        remaining_s: i64,
        /// Whether a new one is to be made meanwhile (RFC 5861 3). It is not where the client
        /// accepts stale responses by itself (`max-stale`).
        refresh: bool,
    },
    /// Ask the origin first, for this reason.
    Validate(Forward),
}

/// Why a request goes to the origin although there is something stored: the `fwd` values of
/// RFC 9211 2.2 that apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// It is stale, or may never be used without validation.
    Stale,
    /// The request wants it so.
    Request,
}

/// Decides it.
pub fn reuse(stored: &Freshness, asked: &RequestDirectives, now_s: u64) -> Reuse {
    let age_s = stored.age_s(now_s);
    let remaining_s = stored.remaining_s(now_s);
    if asked.no_cache {
        return Reuse::Validate(Forward::Request);
    }
    if stored.always_validate {
        return Reuse::Validate(Forward::Stale);
    }
    if remaining_s > 0 {
        return if satisfies(stored, asked, age_s, remaining_s) {
            Reuse::Fresh { age_s, remaining_s }
        } else {
            Reuse::Validate(Forward::Request)
        };
    }
    let stale_s = remaining_s.unsigned_abs();
    let is_wanted_fresh =
        asked.max_age_s.is_some_and(|most| age_s > most) || asked.min_fresh_s.is_some();
    let accepts =
        asked.max_stale_s.is_some_and(|most| most == SECONDS_MAX || stale_s <= most.into());
    if accepts && !stored.never_stale && !is_wanted_fresh {
        return Reuse::Stale { age_s, remaining_s, refresh: false };
    }
    if is_wanted_fresh {
        return Reuse::Validate(Forward::Stale);
    }
    if stale_s < u64::from(stored.stale_while_revalidate_s) {
        return Reuse::Stale { age_s, remaining_s, refresh: true };
    }
    Reuse::Validate(Forward::Stale)
}

/// Whether a fresh response is as fresh as the request wants it.
fn satisfies(stored: &Freshness, asked: &RequestDirectives, age_s: u32, remaining_s: i64) -> bool {
    // RFC 8246 2: a reload does not ask for what cannot have changed.
    let is_young = stored.immutable || asked.max_age_s.is_none_or(|most| age_s <= most);
    is_young && asked.min_fresh_s.is_none_or(|least| remaining_s >= i64::from(least))
}

/// Whether a stored response may stand in for an error of the origin (RFC 5861 4).
///
/// A request may extend that, but not against the response's own word (RFC 9111 4.2.4).
pub fn stands_in(stored: &Freshness, asked: &RequestDirectives, now_s: u64) -> bool {
    if stored.always_validate {
        return false;
    }
    let remaining_s = stored.remaining_s(now_s);
    let asked_s = if stored.never_stale { 0 } else { asked.stale_if_error_s.unwrap_or(0) };
    let grace_s = stored.stale_if_error_s.max(asked_s);
    remaining_s > 0 || remaining_s.unsigned_abs() < u64::from(grace_s)
}

/// RFC 5861 4: the answers that count as errors.
pub fn is_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}
