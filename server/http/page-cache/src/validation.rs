//! Validation of a stored response with its origin (RFC 9111 4.3.1, 4.3.3 to 4.3.5 and 3.2).
//!
//! Called around a revalidation. Invariant: a stored body is never combined with fields that describe
//! another body.

use crate::message::{Field, Fields, Response};
use crate::validators::Validators;
use outboard_http_semantics::EntityTag;

/// Whether a field of the client is left out of the cache's own request: the cache evaluates the
/// client's conditions and ranges itself.
pub fn is_replaced(name: &[u8]) -> bool {
    const NAMES: [&str; 5] =
        ["if-none-match", "if-modified-since", "if-range", "range", "if-match"];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The fields of a validation request (RFC 9111 4.3.1).
pub fn conditional_fields<'a>(stored: Validators<'a>) -> impl Iterator<Item = Field<'a>> {
    let tag = stored.etag.map(|etag| (&b"If-None-Match"[..], etag));
    let date = stored.last_modified.map(|date| (&b"If-Modified-Since"[..], date));
    tag.into_iter().chain(date)
}

/// The result of a validation request (RFC 9111 4.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validation {
    /// The stored response is current: freshen it and use it.
    Confirmed,
    /// The new response replaces it.
    Replaced,
    /// The origin failed: the stored response may be used if it may be used stale.
    Failed,
    /// The 304 does not match our validators: repeat the request without conditions.
    Mismatch,
}

/// Classifies the response to a request with [`conditional_fields`].
pub fn validate(stored: Validators<'_>, response: Response<'_>) -> Validation {
    match response.status {
        304 if confirms(stored, Validators::of(response.fields)) => Validation::Confirmed,
        304 => Validation::Mismatch,
        500..=599 => Validation::Failed,
        _ => Validation::Replaced,
    }
}

/// Whether a 304 with these validators confirms the stored response (RFC 9111 4.3.4). One without
/// validators does, because the request named no other.
fn confirms(stored: Validators<'_>, response: Validators<'_>) -> bool {
    let ours = stored.etag.and_then(EntityTag::parse);
    match (ours, response.etag.and_then(EntityTag::parse)) {
        (Some(ours), Some(theirs)) if !theirs.is_weak => ours.matches_strongly(theirs),
        (Some(ours), Some(theirs)) => ours.matches_weakly(theirs),
        (None, Some(_)) => false,
        (_, None) => match (stored.last_modified_s(), response.last_modified_s()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        },
    }
}

/// Whether the response to a HEAD freshens the stored response to GET (RFC 9111 4.3.5); otherwise it
/// invalidates the stored one. `size` is the length of the stored body.
pub fn head_agrees(stored: Validators<'_>, size: u64, response: Response<'_>) -> bool {
    let theirs = Validators::of(response.fields);
    let length = response.fields.first("content-length");
    let same_length = length.is_none_or(|length| length == size.to_string().as_bytes());
    let same_tag = match (stored.etag, theirs.etag) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => true,
    };
    let same_date = match (stored.last_modified_s(), theirs.last_modified_s()) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => true,
    };
    same_length && same_tag && same_date
}

/// The stored fields after a 304 (RFC 9111 3.2): its fields replace the stored ones, except those that
/// describe the body.
pub fn freshened<'a>(stored: Fields<'a>, response: Fields<'a>) -> Vec<Field<'a>> {
    let updates = || response.0.iter().copied().filter(|(name, _)| !describes_body(name));
    let is_updated = |name: &[u8]| updates().any(|(theirs, _)| theirs.eq_ignore_ascii_case(name));
    let unchanged = stored.0.iter().copied().filter(|(name, _)| !is_updated(name));
    unchanged.chain(updates()).collect()
}

/// Whether a 304 must not change the field (RFC 9111 3.2).
fn describes_body(name: &[u8]) -> bool {
    const NAMES: [&str; 4] =
        ["content-encoding", "content-length", "content-range", "content-type"];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether a 304 repeats the field of a stored response (RFC 9110 15.4.5).
pub fn belongs_into_304(name: &[u8]) -> bool {
    const NAMES: [&str; 9] = [
        "cache-control",
        "cdn-cache-control",
        "content-location",
        "date",
        "etag",
        "expires",
        "server",
        "vary",
        "last-modified",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}
