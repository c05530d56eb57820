//! Conditional requests from clients, evaluated against a stored response (RFC 9111 4.3.2).
//!
//! Called for every response from the cache. Invariant: conditions that only the origin can evaluate
//! (If-Match, If-Unmodified-Since) are never evaluated here.

use crate::message::Fields;
use crate::validators::Validators;
use outboard_http_semantics as semantics;
use outboard_http_semantics::{ByteRange, EntityTag, LastModified, Outcome, RangeSelection};

/// The conditions of a request. Nothing is copied unless a list came in several lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    fields: Fields<'a>,
    has_if_none_match: bool,
    if_modified_since: Option<&'a [u8]>,
    range: Option<&'a [u8]>,
    /// Whether the request has a condition that only the origin can evaluate.
    pub need_origin: bool,
}

/// What a request gets of a stored response with status 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentSelection {
    /// All of it.
    Whole,
    /// 304.
    NotModified,
    /// 206 with these bytes.
    Part(ByteRange),
    /// 416: the range lies beyond its end.
    Unsatisfiable,
}

impl<'a> Conditions<'a> {
    /// Reads the conditions of a request.
    pub fn read(fields: Fields<'a>) -> Self {
        let mut conditions = Self { fields, ..Self::default() };
        for &(name, value) in fields.0 {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                5 if is("range") => conditions.range = Some(value),
                8 if is("if-match") => conditions.need_origin = true,
                13 if is("if-none-match") => conditions.has_if_none_match = true,
                17 if is("if-modified-since") => conditions.if_modified_since = Some(value),
                19 if is("if-unmodified-since") => conditions.need_origin = true,
                _ => {}
            }
        }
        conditions
    }

    /// Whether there are conditions that a stored response can be evaluated against.
    pub fn has_conditions(&self) -> bool {
        self.has_if_none_match || self.if_modified_since.is_some() || self.range.is_some()
    }

    /// Evaluates the conditions against a stored response of status 200 and `size` bytes, which was
    /// received at `received_s` with the Date `date_s`.
    pub fn evaluate(
        &self,
        is_head: bool,
        stored: Validators<'_>,
        date_s: Option<u64>,
        received_s: u64,
        size: u64,
    ) -> ContentSelection {
        let if_none_match =
            self.has_if_none_match.then(|| self.fields.joined("if-none-match")).flatten();
        let if_range = self.range.and_then(|_| self.fields.first("if-range"));
        let request = semantics::Conditions {
            is_head,
            if_none_match: if_none_match.as_deref(),
            if_modified_since: self.if_modified_since,
            range: self.range,
            if_range,
            ..Default::default()
        };
        // Reading a date costs more than the rest, and most revisits are decided by a tag.
        let compares_dates =
            if_range.is_some() || (!self.has_if_none_match && self.if_modified_since.is_some());
        let current = semantics::Validators {
            etag: stored.etag.and_then(EntityTag::parse),
            last_modified: compares_dates.then(|| last_modified(stored, date_s, received_s)),
        };
        match request.evaluate(current) {
            Outcome::NotModified => ContentSelection::NotModified,
            Outcome::Ranged(field) => match semantics::select_ranges(field, size) {
                RangeSelection::Unsatisfiable => ContentSelection::Unsatisfiable,
                // RFC 9110 14.2 allows the whole response where several ranges are requested.
                RangeSelection::Ranges(ranges) => match ranges[..] {
                    [range] => ContentSelection::Part(range),
                    _ => ContentSelection::Whole,
                },
                RangeSelection::Whole => ContentSelection::Whole,
            },
            Outcome::Whole | Outcome::PreconditionFailed => ContentSelection::Whole,
        }
    }
}

/// The date that If-Modified-Since is compared with: Last-Modified, else Date, else the time of
/// reception (RFC 9111 4.3.2). Only a Last-Modified before Date is strong (RFC 9110 8.8.2.2).
fn last_modified(stored: Validators<'_>, date_s: Option<u64>, received_s: u64) -> LastModified {
    match stored.last_modified_s() {
        Some(unix_s) => LastModified { unix_s, is_strong: date_s > Some(unix_s) },
        None => LastModified { unix_s: date_s.unwrap_or(received_s), is_strong: false },
    }
}
