//! Whether a response may be stored (RFC 9111 3), and for which requests.
//!
//! Called when the response to a cache miss is complete. Invariant: a response that may be personal
//! (Set-Cookie, `private`) is never stored.

use crate::cookies::{CookieRules, Visitor};
use crate::freshness::{Freshness, Policy, is_heuristically_cacheable};
use crate::message::{ExchangeTimes, Field, Fields, Response};
use crate::reason::Reason;
use crate::request_facts::RequestFacts;
use crate::targeted::Control;
use crate::validators::Validators;
use crate::vary::Variant;
use outboard_http_semantics::list;

/// The properties of a response that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storable {
    /// Its times.
    pub freshness: Freshness,
    /// The fields that it varies by.
    pub variant: Variant,
    /// The requests that may be answered with it.
    pub audience: Audience,
    /// Whether its body must stay as it is (`no-transform`).
    pub no_transform: bool,
}

/// The requests that may be answered with a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// Requests without credentials and without cookies and fields that could matter: the page states
    /// no lifetime.
    Anonymous,
    /// All without credentials: the page states a lifetime.
    Everybody,
    /// All: the page says `public` or `s-maxage` (RFC 9111 3.5).
    EvenAuthorized,
}

impl Audience {
    /// The audience of a response.
    fn of(freshness: &Freshness, control: &Control) -> Self {
        let stated = &control.directives;
        let has_time =
            freshness.basis.is_explicit() && freshness.lifetime_s > 0 && !freshness.always_validate;
        if stated.public || (stated.s_maxage_s.is_some() && has_time) {
            Self::EvenAuthorized
        } else if has_time {
            Self::Everybody
        } else {
            Self::Anonymous
        }
    }

    /// Whether the audience includes a request.
    ///
    /// # Errors
    /// Why not.
    pub fn admits(self, request: &RequestFacts<'_>) -> Result<(), Reason> {
        if request.has_authorization && self < Self::EvenAuthorized {
            return Err(Reason::Authorization);
        }
        if request.visitor != Visitor::Anonymous && self < Self::Everybody {
            return Err(Reason::UnknownCookie);
        }
        if request.has_unknown_field && self < Self::Everybody {
            return Err(Reason::UnknownField);
        }
        Ok(())
    }
}

/// Decides whether and how a complete response is stored.
///
/// # Errors
/// Why it is not stored.
pub fn storable(
    policy: &Policy,
    rules: &CookieRules,
    request: &RequestFacts<'_>,
    request_fields: Fields<'_>,
    response: Response<'_>,
    exchanged: ExchangeTimes,
) -> Result<Storable, Reason> {
    let control = Control::read(response.fields);
    forbidden(request, response, &control)?;
    let freshness = Freshness::of(policy, response, &control, exchanged);
    let audience = Audience::of(&freshness, &control);
    audience.admits(request)?;
    let is_implicit = audience == Audience::Anonymous;
    let variant = Variant::of(request_fields, response.fields, is_implicit, rules)
        .map_err(|_| Reason::VaryStar)?;
    if !is_worth_storing(&freshness, response) {
        return Err(Reason::NoLifetime);
    }
    Ok(Storable { freshness, variant, audience, no_transform: control.directives.no_transform })
}

/// Whether a response with this head may turn out storable: it does not forbid storage itself and is
/// not an endless stream. If so, it is worth buffering.
pub fn may_be_stored(response: Response<'_>) -> bool {
    let control = Control::read(response.fields);
    let content_type = response.fields.first("content-type").unwrap_or_default();
    let is_endless = content_type.to_ascii_lowercase().starts_with(b"text/event-stream");
    !is_endless && refusal(response, &control).is_none()
}

/// Checks what forbids storage whatever the lifetime.
fn forbidden(
    request: &RequestFacts<'_>,
    response: Response<'_>,
    control: &Control,
) -> Result<(), Reason> {
    if request.directives.no_store {
        return Err(Reason::RequestNoStore);
    }
    refusal(response, control).map_or(Ok(()), Err)
}

/// Why a response forbids its own storage.
fn refusal(response: Response<'_>, control: &Control) -> Option<Reason> {
    let stated = &control.directives;
    // RFC 9111 3: partial content is not combined here, and neither 304 nor 206 answers the requests
    // that are sent to the origin.
    if matches!(response.status, 206 | 304) || response.status < 200 {
        return Some(Reason::Status);
    }
    let is_understood = is_heuristically_cacheable(response.status);
    if stated.must_understand && !is_understood {
        return Some(Reason::Status);
    }
    // RFC 9111 5.2.2.3: no-store with must-understand addresses caches that do not know the status.
    if stated.no_store && !stated.must_understand {
        return Some(Reason::NoStore);
    }
    if stated.private.is_response() {
        return Some(Reason::Private);
    }
    let is_withheld = stated.no_cache.names(b"set-cookie") || stated.private.names(b"set-cookie");
    if response.fields.contains("set-cookie") && !is_withheld {
        return Some(Reason::SetCookie);
    }
    let has_explicit = stated.public
        || stated.max_age_s.is_some()
        || stated.s_maxage_s.is_some()
        || (!control.is_targeted && response.fields.contains("expires"));
    (!has_explicit && !is_understood).then_some(Reason::Status)
}

/// Whether a response is worth storing: it was fresh, can be validated, or may be used stale.
fn is_worth_storing(freshness: &Freshness, response: Response<'_>) -> bool {
    let has_grace = freshness.stale_while_revalidate_s > 0 || freshness.stale_if_error_s > 0;
    let has_use_when_stale = has_grace && freshness.basis.is_explicit();
    freshness.had_a_life() || has_use_when_stale || Validators::of(response.fields).is_some()
}

/// The fields of a response that are stored with it (RFC 9111 3.1).
pub fn stored_fields<'a>(fields: Fields<'a>, control: &Control) -> Vec<Field<'a>> {
    let named: Vec<&[u8]> = fields.all("connection").flat_map(list::elements).collect();
    let is_named = |name: &[u8]| named.iter().any(|other| other.eq_ignore_ascii_case(name));
    let stated = &control.directives;
    let is_withheld = |name: &[u8]| stated.no_cache.names(name) || stated.private.names(name);
    let stored = fields.0.iter().copied();
    stored.filter(|(name, _)| !is_excluded(name) && !is_named(name) && !is_withheld(name)).collect()
}

/// Fields of one connection, and those that are rendered for every response.
fn is_excluded(name: &[u8]) -> bool {
    const NAMES: [&str; 14] = [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "age",
        "cache-status",
        "content-length",
        "x-cache",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}
