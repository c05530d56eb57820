//! Asking the origin whether a stored response still holds, and believing what it says
//! (RFC 9111 4.3.1, 4.3.3 to 4.3.5 and 3.2).
//!
//! Called around a revalidation. Invariant: a stored body is never combined with fields that
//! describe another one.

use crate::message::{Field, Fields, Response};
use crate::validators::{EntityTag, Validators};

/// Whether a request field has to be left out when the cache asks for itself: the client's
/// conditions and ranges are answered here.
pub fn is_replaced(name: &[u8]) -> bool {
    const NAMES: [&str; 5] =
        ["if-none-match", "if-modified-since", "if-range", "range", "if-match"];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The fields that ask whether the stored response still holds (RFC 9111 4.3.1).
pub fn conditional_fields<'a>(stored: Validators<'a>) -> impl Iterator<Item = Field<'a>> {
    let tag = stored.etag.map(|etag| (&b"If-None-Match"[..], etag));
    let date = stored.last_modified.map(|date| (&b"If-Modified-Since"[..], date));
    tag.into_iter().chain(date)
}

/// What an answer to such a request means (RFC 9111 4.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The stored response holds: freshen it and use it.
    Holds,
    /// The answer is the response now.
    Replaced,
    /// The origin failed: the stored one may stand in, if it may be used stale.
    Failed,
    /// It says that something else holds: ask again without conditions.
    Mistaken,
}

/// Judges an answer to the request that [`conditional_fields`] made.
pub fn verdict(stored: Validators<'_>, answer: Response<'_>) -> Verdict {
    match answer.status {
        304 if is_about(stored, Validators::of(answer.fields)) => Verdict::Holds,
        304 => Verdict::Mistaken,
        500..=599 => Verdict::Failed,
        _ => Verdict::Replaced,
    }
}

/// RFC 9111 4.3.4: whether a 304 with these validators is about the stored response. One without
/// any is about the only response that was asked for.
fn is_about(stored: Validators<'_>, answer: Validators<'_>) -> bool {
    let ours = stored.etag.and_then(EntityTag::parse);
    match (ours, answer.etag.and_then(EntityTag::parse)) {
        (Some(ours), Some(theirs)) if !theirs.is_weak => ours.matches_strongly(theirs),
        (Some(ours), Some(theirs)) => ours.matches_weakly(theirs),
        (None, Some(_)) => false,
        (_, None) => match (stored.last_modified_s(), answer.last_modified_s()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        },
    }
}

/// Whether the answer to a HEAD freshens the stored response to GET (RFC 9111 4.3.5); otherwise
/// the stored one is to be invalidated. `size` is the length of the stored body.
pub fn head_agrees(stored: Validators<'_>, size: u64, answer: Response<'_>) -> bool {
    let theirs = Validators::of(answer.fields);
    let length = answer.fields.first("content-length");
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

/// The stored fields after a 304 (RFC 9111 3.2): those that it names are replaced, but for the
/// ones that describe the stored body.
pub fn freshened<'a>(stored: Fields<'a>, answer: Fields<'a>) -> Vec<Field<'a>> {
    let updates = || answer.0.iter().copied().filter(|(name, _)| !describes_body(name));
    let is_updated = |name: &[u8]| updates().any(|(theirs, _)| theirs.eq_ignore_ascii_case(name));
    let kept = stored.0.iter().copied().filter(|(name, _)| !is_updated(name));
    kept.chain(updates()).collect()
}

/// RFC 9111 3.2: fields that a 304 may not change.
fn describes_body(name: &[u8]) -> bool {
    const NAMES: [&str; 4] =
        ["content-encoding", "content-length", "content-range", "content-type"];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether a field of a stored response belongs into a 304 (RFC 9110 15.4.5).
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
