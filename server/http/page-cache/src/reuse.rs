//! Whether a stored response may be used for a request (RFC 9111 4.2.4 and 5.2.1, RFC 5861).
//!
//! Called on every lookup that found an entry. Pure; the hot path of a hit.

use crate::directives::{RequestDirectives, SECONDS_MAX};
use crate::freshness::Freshness;

/// The use of a stored response that matches a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Serve it.
    Fresh {
        /// For the Age field, in seconds.
        age_s: u32,
        /// The seconds until it becomes stale.
        remaining_s: i64,
    },
    /// Serve it although it is stale.
    Stale {
        /// For the Age field, in seconds.
        age_s: u32,
        /// The seconds since it became stale, as a negative number.
        remaining_s: i64,
        /// Whether to revalidate it in the background (RFC 5861 3); not if it is served because the
        /// client accepts stale responses (`max-stale`).
        refresh: bool,
    },
    /// Validate it with the origin first, for this reason.
    Validate(Forward),
}

/// Why a request is forwarded although a response is stored: the `fwd` values of RFC 9211 2.2 that
/// apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// The response is stale, or requires validation.
    Stale,
    /// The request requires it.
    Request,
}

/// Decides the use of a stored response.
pub fn reuse(stored: &Freshness, request: &RequestDirectives, now_s: u64) -> Reuse {
    let age_s = stored.age_s(now_s);
    let remaining_s = stored.remaining_s(now_s);
    if request.no_cache {
        return Reuse::Validate(Forward::Request);
    }
    if stored.always_validate {
        return Reuse::Validate(Forward::Stale);
    }
    if remaining_s > 0 {
        return if satisfies(stored, request, age_s, remaining_s) {
            Reuse::Fresh { age_s, remaining_s }
        } else {
            Reuse::Validate(Forward::Request)
        };
    }
    let stale_s = remaining_s.unsigned_abs();
    let requires_fresh =
        request.max_age_s.is_some_and(|most| age_s > most) || request.min_fresh_s.is_some();
    let accepts =
        request.max_stale_s.is_some_and(|most| most == SECONDS_MAX || stale_s <= most.into());
    if accepts && !stored.never_stale && !requires_fresh {
        return Reuse::Stale { age_s, remaining_s, refresh: false };
    }
    if requires_fresh {
        return Reuse::Validate(Forward::Stale);
    }
    if stale_s < u64::from(stored.stale_while_revalidate_s) {
        return Reuse::Stale { age_s, remaining_s, refresh: true };
    }
    Reuse::Validate(Forward::Stale)
}

/// Whether a fresh response is as fresh as the request requires.
fn satisfies(
    stored: &Freshness,
    request: &RequestDirectives,
    age_s: u32,
    remaining_s: i64,
) -> bool {
    // RFC 8246 2: a reload does not revalidate an immutable response.
    let is_young = stored.immutable || request.max_age_s.is_none_or(|most| age_s <= most);
    is_young && request.min_fresh_s.is_none_or(|least| remaining_s >= i64::from(least))
}

/// Whether a stored response may be served in place of an error of the origin (RFC 5861 4).
///
/// A request may extend the time, unless the response forbids stale use (RFC 9111 4.2.4).
pub fn may_serve_on_error(stored: &Freshness, request: &RequestDirectives, now_s: u64) -> bool {
    if stored.always_validate {
        return false;
    }
    let remaining_s = stored.remaining_s(now_s);
    let request_s = if stored.never_stale { 0 } else { request.stale_if_error_s.unwrap_or(0) };
    let grace_s = stored.stale_if_error_s.max(request_s);
    remaining_s > 0 || remaining_s.unsigned_abs() < u64::from(grace_s)
}

/// Whether `stale-if-error` applies to a status (RFC 5861 4).
pub fn is_stale_if_error_status(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}
