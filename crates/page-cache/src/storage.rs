//! Whether a response may be kept (RFC 9111 3), and for whom.
//!
//! Called when a response to a request that the cache had nothing for is whole. Invariant: what
//! may be personal is refused, whoever allows it: a cookie that is set, `private`.

use crate::cookies::{CookieRules, Visitor};
use crate::freshness::{Freshness, is_heuristically_cacheable};
use crate::list;
use crate::message::{Exchanged, Field, Fields, Response};
use crate::policy::Policy;
use crate::reason::Reason;
use crate::request_facts::RequestFacts;
use crate::targeted::Control;
use crate::validators::Validators;
use crate::vary::Variant;

/// What is decided about a response that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storable {
    /// Its times.
    pub freshness: Freshness,
    /// What it varies by.
    pub variant: Variant,
    /// Who may get it.
    pub audience: Audience,
    /// Whether its body must stay as it is (`no-transform`).
    pub no_transform: bool,
}

/// Who may get a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// Requests without credentials and without cookies and fields that could matter: the page did
    /// not say for whom it is.
    Anonymous,
    /// All but requests with credentials: the page said how long it may be kept.
    Everybody,
    /// Those too: it said `public` or `s-maxage` (RFC 9111 3.5).
    EvenAuthorized,
}

impl Audience {
    /// Of a response.
    fn of(freshness: &Freshness, control: &Control) -> Self {
        let said = &control.directives;
        let has_time =
            freshness.basis.is_explicit() && freshness.lifetime_s > 0 && !freshness.always_validate;
        if said.public || (said.s_maxage_s.is_some() && has_time) {
            Self::EvenAuthorized
        } else if has_time {
            Self::Everybody
        } else {
            Self::Anonymous
        }
    }

    /// Whether a request belongs to it.
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

/// Decides whether and how a whole response is kept.
///
/// # Errors
/// Why it is not.
pub fn storable(
    policy: &Policy,
    rules: &CookieRules,
    request: &RequestFacts<'_>,
    request_fields: Fields<'_>,
    response: Response<'_>,
    exchanged: Exchanged,
) -> Result<Storable, Reason> {
    let control = Control::read(response.fields);
    forbidden(request, response, &control)?;
    let freshness = Freshness::of(policy, response, &control, exchanged);
    let audience = Audience::of(&freshness, &control);
    audience.admits(request)?;
    let is_silent = audience == Audience::Anonymous;
    let variant = Variant::of(request_fields, response.fields, is_silent, rules)
        .map_err(|_| Reason::VaryStar)?;
    if !is_useful(&freshness, response) {
        return Err(Reason::NoLifetime);
    }
    Ok(Storable { freshness, variant, audience, no_transform: control.directives.no_transform })
}

/// Whether it is worth waiting for the rest of a response with this head: nothing that it says by
/// itself forbids to keep it, and it is not one that has no end.
pub fn may_be_kept(response: Response<'_>) -> bool {
    let control = Control::read(response.fields);
    let kind = response.fields.first("content-type").unwrap_or_default();
    let is_endless = kind.to_ascii_lowercase().starts_with(b"text/event-stream");
    !is_endless && refusal(response, &control).is_none()
}

/// What forbids to keep it, whatever its times are.
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

/// What a response itself says against being kept.
fn refusal(response: Response<'_>, control: &Control) -> Option<Reason> {
    let said = &control.directives;
    // RFC 9111 3: partial content is not combined here, and 304 and 206 are never final answers
    // to what is asked of the origin.
    if matches!(response.status, 206 | 304) || response.status < 200 {
        return Some(Reason::Status);
    }
    let is_understood = is_heuristically_cacheable(response.status);
    if said.must_understand && !is_understood {
        return Some(Reason::Status);
    }
    // RFC 9111 5.2.2.3: no-store beside must-understand is for caches that do not know the code.
    if said.no_store && !said.must_understand {
        return Some(Reason::NoStore);
    }
    if said.private.is_response() {
        return Some(Reason::Private);
    }
    let is_withheld = said.no_cache.names(b"set-cookie") || said.private.names(b"set-cookie");
    if response.fields.contains("set-cookie") && !is_withheld {
        return Some(Reason::SetCookie);
    }
    let has_explicit = said.public
        || said.max_age_s.is_some()
        || said.s_maxage_s.is_some()
        || (!control.is_targeted && response.fields.contains("expires"));
    (!has_explicit && !is_understood).then_some(Reason::Status)
}

/// Something that is stale at once is worth its place only if it can be validated, or used stale.
fn is_useful(freshness: &Freshness, response: Response<'_>) -> bool {
    let has_grace = freshness.stale_while_revalidate_s > 0 || freshness.stale_if_error_s > 0;
    let has_use_when_stale = has_grace && freshness.basis.is_explicit();
    freshness.had_a_life() || has_use_when_stale || Validators::of(response.fields).is_some()
}

/// The fields of a response that are kept with it (RFC 9111 3.1), given what it says itself.
pub fn kept_fields<'a>(fields: Fields<'a>, control: &Control) -> Vec<Field<'a>> {
    let named: Vec<&[u8]> = fields.all("connection").flat_map(list::elements).collect();
    let is_named = |name: &[u8]| named.iter().any(|other| other.eq_ignore_ascii_case(name));
    let said = &control.directives;
    let is_withheld = |name: &[u8]| said.no_cache.names(name) || said.private.names(name);
    let kept = fields.0.iter().copied();
    kept.filter(|(name, _)| !is_ours(name) && !is_named(name) && !is_withheld(name)).collect()
}

/// Fields of one connection, and those that are made anew with every answer.
fn is_ours(name: &[u8]) -> bool {
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
