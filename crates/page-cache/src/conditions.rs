//! Conditional requests from clients, answered from a stored response (RFC 9111 4.3.2).
//!
//! Called for every answer from the cache. Invariant: conditions that only the origin can judge
//! (If-Match, If-Unmodified-Since) are never judged here.

use crate::date;
use crate::message::Fields;
use crate::range::{self, Ranged};
use crate::validators::{EntityTag, Validators};
use std::borrow::Cow;

/// The conditions of a request. Nothing is copied unless a list came in several lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    fields: Fields<'a>,
    has_if_none_match: bool,
    if_modified_since: Option<&'a [u8]>,
    range: Option<&'a [u8]>,
    /// Whether there is one that a stored response cannot answer.
    pub concern_the_origin: bool,
}

/// What the conditions make of a stored response with status 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// All of it.
    Whole,
    /// 304.
    NotModified,
    /// 206 with these bytes.
    Part(Ranged),
    /// 416: the range lies beyond its end.
    Unsatisfiable,
}

impl<'a> Conditions<'a> {
    /// Reads them.
    pub fn read(fields: Fields<'a>) -> Self {
        let mut conditions = Self { fields, ..Self::default() };
        for &(name, value) in fields.0 {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                5 if is("range") => conditions.range = Some(value),
                8 if is("if-match") => conditions.concern_the_origin = true,
                13 if is("if-none-match") => conditions.has_if_none_match = true,
                17 if is("if-modified-since") => conditions.if_modified_since = Some(value),
                19 if is("if-unmodified-since") => conditions.concern_the_origin = true,
                _ => {}
            }
        }
        conditions
    }

    /// Whether there are any that a stored response can answer.
    pub fn are_any(&self) -> bool {
        self.has_if_none_match || self.if_modified_since.is_some() || self.range.is_some()
    }

    /// What to answer with a stored response of status 200 and `size` bytes, which was received
    /// at `received_s` with the Date `date_s`.
    pub fn answer(
        &self,
        is_head: bool,
        stored: Validators<'_>,
        date_s: Option<u64>,
        received_s: u64,
        size: u64,
    ) -> Answer {
        if self.is_not_modified(stored, date_s.unwrap_or(received_s)) {
            return Answer::NotModified;
        }
        // RFC 9110 14.2: Range is defined for GET alone.
        match self.range {
            Some(range) if !is_head && self.if_range_holds(stored, date_s) => {
                range::select(range, size)
            }
            _ => Answer::Whole,
        }
    }

    fn is_not_modified(&self, stored: Validators<'_>, otherwise_s: u64) -> bool {
        if self.has_if_none_match {
            let field = self.fields.joined("if-none-match").unwrap_or(Cow::Borrowed(b""));
            return lists(&field, stored.etag);
        }
        let Some(since_s) = self.if_modified_since.and_then(date::parse) else { return false };
        stored.last_modified_s().unwrap_or(otherwise_s) <= since_s
    }

    /// RFC 9110 13.1.5: a strong tag, or the exact date of a response that was old enough when it
    /// was made for that date to be strong (RFC 9110 8.8.2.2).
    fn if_range_holds(&self, stored: Validators<'_>, date_s: Option<u64>) -> bool {
        let Some(wanted) = self.fields.first("if-range") else { return true };
        if let Some(wanted) = EntityTag::parse(wanted) {
            let etag = stored.etag.and_then(EntityTag::parse);
            return etag.is_some_and(|etag| etag.matches_strongly(wanted));
        }
        let (Some(wanted_s), Some(modified_s)) = (date::parse(wanted), stored.last_modified_s())
        else {
            return false;
        };
        wanted_s == modified_s && date_s.is_some_and(|date_s| date_s > modified_s)
    }
}

/// Whether a list of entity-tags, or `*`, names the stored one (RFC 9110 13.1.2). A list that is
/// malformed somewhere names only what stands before that place.
fn lists(field: &[u8], etag: Option<&[u8]>) -> bool {
    let mut rest = field.trim_ascii();
    if rest == b"*" {
        return true;
    }
    let Some(etag) = etag.and_then(EntityTag::parse) else { return false };
    loop {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let Some((theirs, tail)) = EntityTag::read(rest) else { return false };
        if theirs.matches_weakly(etag) {
            return true;
        }
        rest = tail;
    }
}
