//! Conditional requests (RFC 9110 13), evaluated in the order of section 13.2.2. Pure.

use crate::date::parse_http_date;
use crate::entity_tag::{EntityTag, entity_tags, is_any_tag};

/// The fields of a GET or HEAD request that decide whether content is sent, and how much of it.
/// A field that came in several lines is given as one value, joined by `", "`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    /// Whether the method is HEAD, for which Range is not defined (RFC 9110 14.2).
    pub is_head: bool,
    /// If-Match.
    pub if_match: Option<&'a [u8]>,
    /// If-None-Match.
    pub if_none_match: Option<&'a [u8]>,
    /// If-Modified-Since.
    pub if_modified_since: Option<&'a [u8]>,
    /// If-Unmodified-Since.
    pub if_unmodified_since: Option<&'a [u8]>,
    /// Range.
    pub range: Option<&'a [u8]>,
    /// If-Range.
    pub if_range: Option<&'a [u8]>,
}

/// The response that the conditions call for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// 200 with the whole content.
    Whole,
    /// The parts of the content that this Range field selects.
    Ranged(&'a [u8]),
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// The validators of the selected representation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Validators<'a> {
    /// Its entity-tag.
    pub etag: Option<EntityTag<'a>>,
    /// Its modification date; without one, dates in conditions are ignored.
    pub last_modified: Option<LastModified>,
}

/// A modification date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastModified {
    /// Seconds since 1970 (UTC).
    pub unix_s: u64,
    /// Whether equal dates mean equal content (RFC 9110 8.8.2.2).
    pub is_strong: bool,
}

impl<'a> Conditions<'a> {
    /// Evaluates the conditions against the current representation (RFC 9110 13.2.2).
    pub fn evaluate(&self, current: Validators<'_>) -> Outcome<'a> {
        let precondition_holds = match (self.if_match, self.if_unmodified_since) {
            (Some(field), _) => names(field, current, EntityTag::matches_strongly),
            (None, Some(date)) => is_newer(current, date) != Some(true),
            (None, None) => true,
        };
        if !precondition_holds {
            return Outcome::PreconditionFailed;
        }
        let not_modified = match (self.if_none_match, self.if_modified_since) {
            (Some(field), _) => names(field, current, EntityTag::matches_weakly),
            (None, Some(date)) => is_newer(current, date) == Some(false),
            (None, None) => false,
        };
        if not_modified {
            return Outcome::NotModified;
        }
        match self.range {
            Some(range) if !self.is_head && self.if_range_holds(current) => Outcome::Ranged(range),
            _ => Outcome::Whole,
        }
    }

    /// RFC 9110 13.1.5: tags compare strongly, dates exactly.
    fn if_range_holds(&self, current: Validators<'_>) -> bool {
        let Some(validator) = self.if_range.map(<[u8]>::trim_ascii) else { return true };
        if let Some(tag) = EntityTag::parse(validator) {
            return current.etag.is_some_and(|etag| etag.matches_strongly(tag));
        }
        let date = current.last_modified.filter(|date| date.is_strong);
        date.is_some_and(|date| parse_http_date(validator) == Some(date.unix_s))
    }
}

/// Whether the representation changed after the date; `None` if either date is unknown, and the
/// field is then ignored (RFC 9110 13.1.3 and 13.1.4).
fn is_newer(current: Validators<'_>, date: &[u8]) -> Option<bool> {
    Some(current.last_modified?.unix_s > parse_http_date(date)?)
}

/// Whether `*` or a list of tags names the current representation. A malformed list names only what
/// precedes the fault.
fn names<'t>(
    field: &'t [u8],
    current: Validators<'t>,
    matches: fn(EntityTag<'t>, EntityTag<'t>) -> bool,
) -> bool {
    let is_current = |tag| current.etag.is_some_and(|etag| matches(etag, tag));
    is_any_tag(field) || entity_tags(field).map_while(Result::ok).any(is_current)
}

#[cfg(test)]
mod tests;
