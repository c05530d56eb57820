//! How long a response is fresh, how old it is, and how long it may be used after
//! (RFC 9111 4.2, RFC 5861). Pure: every time is passed in, in seconds since 1970.
//!
//! Called when a response is stored, freshened or looked at. Invariant: conflicting or unreadable
//! information never makes a response live longer.

use crate::date;
use crate::directives::{SECONDS_MAX, digits};
use crate::list;
use crate::message::{Exchanged, Fields, Response};
use crate::policy::Policy;
use crate::targeted::Control;

/// What a lifetime was taken from.
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
    /// The policy for pages that say nothing.
    Silent,
    /// Nothing: it is stale at once.
    Nothing,
}

impl Basis {
    /// Whether the response said it itself (RFC 9111 4.2: an explicit expiration time).
    pub fn is_explicit(self) -> bool {
        matches!(self, Self::SharedMaxAge | Self::MaxAge | Self::Expires)
    }
}

/// The times of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// When it was received, in seconds since 1970.
    pub received_s: u64,
    /// Its age then (RFC 9111 4.2.3), in seconds.
    pub initial_age_s: u32,
    /// For how long it is fresh from its creation on, in seconds.
    pub lifetime_s: u32,
    /// What that was taken from.
    pub basis: Basis,
    /// How long it may be used while a new one is made, in seconds after it became stale.
    pub stale_while_revalidate_s: u32,
    /// How long it may be used when a new one cannot be had, in seconds after it became stale.
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
        exchanged: Exchanged,
    ) -> Self {
        let date_s = response.fields.first("date").and_then(date::parse);
        let (lifetime_s, basis) =
            lifetime(policy, response, control, date_s.unwrap_or(exchanged.response_s));
        let initial_age_s = initial_age_s(response.fields, date_s, exchanged);
        let said = &control.directives;
        // Stale use that the response itself allows goes before what s-maxage implies
        // (RFC 9111 5.2.2.10); what the policy would add does not. Nor does it give a life to what
        // has none: `Expires: 0` is how applications say that a page is not to be kept.
        let forbidden = said.must_revalidate || said.proxy_revalidate;
        let implied = forbidden || said.s_maxage_s.is_some();
        let is_stillborn = lifetime_s <= initial_age_s || said.no_cache.is_response();
        let grace = |own: Option<u32>, configured: u32| match own {
            _ if forbidden => 0,
            Some(own) => own,
            None if implied || is_stillborn => 0,
            None => configured,
        };
        Self {
            received_s: exchanged.response_s,
            initial_age_s,
            lifetime_s,
            basis,
            stale_while_revalidate_s: grace(
                said.stale_while_revalidate_s,
                policy.stale_while_revalidate_s,
            ),
            stale_if_error_s: grace(said.stale_if_error_s, policy.stale_if_error_s),
            always_validate: said.no_cache.is_response(),
            never_stale: implied,
            immutable: said.immutable,
        }
    }

    /// RFC 9111 4.2.3: current_age.
    pub fn age_s(&self, now_s: u64) -> u32 {
        let resident_s = now_s.saturating_sub(self.received_s);
        capped(resident_s.saturating_add(self.initial_age_s.into()))
    }

    /// For how many more seconds it is fresh; negative since it became stale.
    pub fn remaining_s(&self, now_s: u64) -> i64 {
        i64::from(self.lifetime_s) - i64::from(self.age_s(now_s))
    }

    /// RFC 9111 4.2: fresh while its age has not reached its lifetime.
    pub fn is_fresh(&self, now_s: u64) -> bool {
        self.remaining_s(now_s) > 0
    }

    /// Whether it was fresh when it came.
    pub fn had_a_life(&self) -> bool {
        self.lifetime_s > self.initial_age_s
    }

    /// Ends the freshness, as a soft purge does: from now on it is stale, and nothing forgives it.
    pub fn expire(&mut self, now_s: u64) {
        self.lifetime_s = self.lifetime_s.min(self.age_s(now_s));
        self.immutable = false;
    }

    /// The last second in which it can be of any use without a validator.
    pub fn useful_until_s(&self) -> u64 {
        let fresh_s = self.lifetime_s.saturating_sub(self.initial_age_s);
        let grace_s = self.stale_while_revalidate_s.max(self.stale_if_error_s);
        self.received_s + u64::from(fresh_s) + u64::from(grace_s)
    }
}

fn capped(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(SECONDS_MAX).min(SECONDS_MAX)
}

/// Fields in which a response speaks to caches of other kinds. What it says is not read; but a page
/// that says something is not one that says nothing.
const ELSEWHERE: [&str; 3] = ["pragma", "surrogate-control", "x-litespeed-cache-control"];

/// RFC 9111 4.2.1 and 4.2.2.
fn lifetime(
    policy: &Policy,
    response: Response<'_>,
    control: &Control,
    date_s: u64,
) -> (u32, Basis) {
    let said = &control.directives;
    if let Some(seconds) = said.s_maxage_s {
        return (seconds, Basis::SharedMaxAge);
    }
    if let Some(seconds) = said.max_age_s {
        return (seconds, Basis::MaxAge);
    }
    if !control.is_targeted
        && let Some(expires_s) = expires_s(response.fields)
    {
        return (capped(expires_s.unwrap_or(0).saturating_sub(date_s)), Basis::Expires);
    }
    if said.no_cache.is_response() {
        return (0, Basis::Nothing);
    }
    if !is_heuristically_cacheable(response.status) && !said.public {
        return (0, Basis::Nothing);
    }
    if ELSEWHERE.iter().any(|name| response.fields.contains(name)) {
        return (0, Basis::Nothing);
    }
    let modified_s = response.fields.first("last-modified").and_then(date::parse);
    match modified_s.and_then(|modified_s| date_s.checked_sub(modified_s)) {
        Some(since_s) if policy.heuristic_max_s > 0 => {
            let share_s = since_s / 100 * u64::from(policy.heuristic_percent)
                + since_s % 100 * u64::from(policy.heuristic_percent) / 100;
            (capped(share_s.min(policy.heuristic_max_s.into())), Basis::Heuristic)
        }
        _ if policy.silent_s > 0 => (policy.silent_s, Basis::Silent),
        _ => (0, Basis::Nothing),
    }
}

/// RFC 9111 5.3: `Some(None)` is a date that cannot be read, or two that differ: in the past.
fn expires_s(fields: Fields<'_>) -> Option<Option<u64>> {
    let mut values = fields.all("expires").map(date::parse);
    let first = values.next()?;
    Some(first.filter(|_| values.all(|other| other == first)))
}

/// RFC 9110 15.1.
pub(crate) fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// RFC 9111 4.2.3: corrected_initial_age.
fn initial_age_s(fields: Fields<'_>, date_s: Option<u64>, exchanged: Exchanged) -> u32 {
    let apparent_s = date_s.map_or(0, |date_s| exchanged.response_s.saturating_sub(date_s));
    let delay_s = exchanged.response_s.saturating_sub(exchanged.request_s);
    let stated_s = u64::from(age_field_s(fields));
    capped(apparent_s.max(stated_s.saturating_add(delay_s)))
}

/// RFC 9111 5.1: the first member, or nothing if that is no number.
fn age_field_s(fields: Fields<'_>) -> u32 {
    let first = fields.first("age").and_then(|value| list::elements(value).next());
    first.and_then(digits).unwrap_or(0)
}
