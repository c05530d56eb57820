//! The freshness of a response: lifetime, age and permitted staleness (RFC 9111 4.2, RFC 5861). Pure:
//! every time is a parameter, in seconds since 1970.
//!
//! Called when a response is stored, freshened or looked up. Invariant: conflicting or unreadable
//! information never extends a lifetime.

use crate::directives::{SECONDS_MAX, digits};
use crate::message::{ExchangeTimes, Fields, Response};
use crate::targeted::Control;
use outboard_http_semantics::{list, parse_http_date};

/// The times that the application's configuration decides rather than its responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The lifetime of an anonymous page that states none, in seconds; 0: it is not stored.
    pub default_ttl_s: u32,
    /// The heuristic lifetime as a share of the time since Last-Modified, in percent
    /// (RFC 9111 4.2.2 suggests 10).
    pub heuristic_percent: u32,
    /// The longest heuristic lifetime, in seconds; 0: no heuristics.
    pub heuristic_max_s: u32,
    /// `stale-while-revalidate` of responses without the directive, in seconds.
    pub stale_while_revalidate_s: u32,
    /// `stale-if-error` of responses without the directive, in seconds.
    pub stale_if_error_s: u32,
    /// Whether the directives of requests are honored, which RFC 9111 5.2.1 leaves to the cache.
    pub honors_client_cache_control: bool,
    /// The longest body that is stored, in bytes.
    pub body_max_bytes: usize,
}

impl Policy {
    /// RFC 9111 without additions.
    pub const STANDARD: Self = Self {
        default_ttl_s: 0,
        heuristic_percent: 10,
        heuristic_max_s: 86_400,
        stale_while_revalidate_s: 0,
        stale_if_error_s: 0,
        honors_client_cache_control: true,
        body_max_bytes: 8 << 20,
    };
}

/// The source of a lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// `s-maxage`.
    SharedMaxAge,
    /// `max-age`.
    MaxAge,
    /// Expires.
    Expires,
    /// A share of the time since Last-Modified (RFC 9111 4.2.2).
    Heuristic,
    /// [`Policy::default_ttl_s`].
    DefaultTtl,
    /// None: the response is stale at once.
    Nothing,
}

impl Basis {
    /// Whether the response itself stated it (RFC 9111 4.2: an explicit expiration time).
    pub fn is_explicit(self) -> bool {
        matches!(self, Self::SharedMaxAge | Self::MaxAge | Self::Expires)
    }
}

/// The times of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// The time of reception, in seconds since 1970.
    pub received_s: u64,
    /// The age at reception (RFC 9111 4.2.3), in seconds.
    pub initial_age_s: u32,
    /// The lifetime from the creation on, in seconds.
    pub lifetime_s: u32,
    /// The source of the lifetime.
    pub basis: Basis,
    /// How long it may be used during a revalidation, in seconds after it became stale.
    pub stale_while_revalidate_s: u32,
    /// How long it may be used while the origin fails, in seconds after it became stale.
    pub stale_if_error_s: u32,
    /// `no-cache`: never used without validation.
    pub always_validate: bool,
    /// `must-revalidate`, `proxy-revalidate` or `s-maxage`: never used stale.
    pub never_stale: bool,
    /// `immutable` (RFC 8246).
    pub immutable: bool,
}

impl Freshness {
    /// The times of a response.
    pub fn of(
        policy: &Policy,
        response: Response<'_>,
        control: &Control,
        exchanged: ExchangeTimes,
    ) -> Self {
        let date_s = response.fields.first("date").and_then(parse_http_date);
        let (lifetime_s, basis) =
            lifetime(policy, response, control, date_s.unwrap_or(exchanged.response_s));
        let initial_age_s = initial_age_s(response.fields, date_s, exchanged);
        let stated = &control.directives;
        // The response's own permission for stale use overrides what s-maxage implies
        // (RFC 9111 5.2.2.10); the policy's does not. Nor does the policy revive a response without
        // a lifetime: `Expires: 0` is how applications forbid caching.
        let forbidden = stated.must_revalidate || stated.proxy_revalidate;
        let implied = forbidden || stated.s_maxage_s.is_some();
        let has_no_life = lifetime_s <= initial_age_s || stated.no_cache.is_response();
        let grace = |own: Option<u32>, configured: u32| match own {
            _ if forbidden => 0,
            Some(own) => own,
            None if implied || has_no_life => 0,
            None => configured,
        };
        Self {
            received_s: exchanged.response_s,
            initial_age_s,
            lifetime_s,
            basis,
            stale_while_revalidate_s: grace(
                stated.stale_while_revalidate_s,
                policy.stale_while_revalidate_s,
            ),
            stale_if_error_s: grace(stated.stale_if_error_s, policy.stale_if_error_s),
            always_validate: stated.no_cache.is_response(),
            never_stale: implied,
            immutable: stated.immutable,
        }
    }

    /// RFC 9111 4.2.3: current_age.
    pub fn age_s(&self, now_s: u64) -> u32 {
        let resident_s = now_s.saturating_sub(self.received_s);
        capped(resident_s.saturating_add(self.initial_age_s.into()))
    }

    /// The seconds until it becomes stale; negative afterwards.
    pub fn remaining_s(&self, now_s: u64) -> i64 {
        i64::from(self.lifetime_s) - i64::from(self.age_s(now_s))
    }

    /// RFC 9111 4.2: fresh while its age has not reached its lifetime.
    pub fn is_fresh(&self, now_s: u64) -> bool {
        self.remaining_s(now_s) > 0
    }

    /// Whether it was fresh at reception.
    pub fn had_a_life(&self) -> bool {
        self.lifetime_s > self.initial_age_s
    }

    /// Ends the freshness, as a soft purge does; `immutable` no longer protects it.
    pub fn expire(&mut self, now_s: u64) {
        self.lifetime_s = self.lifetime_s.min(self.age_s(now_s));
        self.immutable = false;
    }

    /// The last second in which it can be used without a validator.
    pub fn useful_until_s(&self) -> u64 {
        let fresh_s = self.lifetime_s.saturating_sub(self.initial_age_s);
        let grace_s = self.stale_while_revalidate_s.max(self.stale_if_error_s);
        self.received_s + u64::from(fresh_s) + u64::from(grace_s)
    }
}

fn capped(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(SECONDS_MAX).min(SECONDS_MAX)
}

/// Fields that address caches of other kinds. Their values are not read, but a page that has one does
/// not get the default lifetime.
const OTHER_CACHES: [&str; 3] = ["pragma", "surrogate-control", "x-litespeed-cache-control"];

/// RFC 9111 4.2.1 and 4.2.2.
fn lifetime(
    policy: &Policy,
    response: Response<'_>,
    control: &Control,
    date_s: u64,
) -> (u32, Basis) {
    let stated = &control.directives;
    if let Some(seconds) = stated.s_maxage_s {
        return (seconds, Basis::SharedMaxAge);
    }
    if let Some(seconds) = stated.max_age_s {
        return (seconds, Basis::MaxAge);
    }
    if !control.is_targeted
        && let Some(expires_s) = expires_s(response.fields)
    {
        return (capped(expires_s.unwrap_or(0).saturating_sub(date_s)), Basis::Expires);
    }
    if stated.no_cache.is_response() {
        return (0, Basis::Nothing);
    }
    if !is_heuristically_cacheable(response.status) && !stated.public {
        return (0, Basis::Nothing);
    }
    if OTHER_CACHES.iter().any(|name| response.fields.contains(name)) {
        return (0, Basis::Nothing);
    }
    let modified_s = response.fields.first("last-modified").and_then(parse_http_date);
    match modified_s.and_then(|modified_s| date_s.checked_sub(modified_s)) {
        Some(since_s) if policy.heuristic_max_s > 0 => {
            let share_s = since_s / 100 * u64::from(policy.heuristic_percent)
                + since_s % 100 * u64::from(policy.heuristic_percent) / 100;
            (capped(share_s.min(policy.heuristic_max_s.into())), Basis::Heuristic)
        }
        _ if policy.default_ttl_s > 0 => (policy.default_ttl_s, Basis::DefaultTtl),
        _ => (0, Basis::Nothing),
    }
}

/// RFC 9111 5.3: `Some(None)` is an invalid date or two that differ, which mean the past.
fn expires_s(fields: Fields<'_>) -> Option<Option<u64>> {
    let mut values = fields.all("expires").map(parse_http_date);
    let first = values.next()?;
    Some(first.filter(|_| values.all(|other| other == first)))
}

/// RFC 9110 15.1.
pub(crate) fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// RFC 9111 4.2.3: corrected_initial_age.
fn initial_age_s(fields: Fields<'_>, date_s: Option<u64>, exchanged: ExchangeTimes) -> u32 {
    let apparent_s = date_s.map_or(0, |date_s| exchanged.response_s.saturating_sub(date_s));
    let delay_s = exchanged.response_s.saturating_sub(exchanged.request_s);
    let stated_s = u64::from(age_field_s(fields));
    capped(apparent_s.max(stated_s.saturating_add(delay_s)))
}

/// RFC 9111 5.1: the first member, or 0 if it is not a number.
fn age_field_s(fields: Fields<'_>) -> u32 {
    let first = fields.first("age").and_then(|value| list::elements(value).next());
    first.and_then(digits).unwrap_or(0)
}
