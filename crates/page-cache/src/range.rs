//! Ranges of stored, complete responses (RFC 9110 14). Pure; called by [`crate::conditions`].
//!
//! One range is answered; a request for several gets the whole, as RFC 9110 14.2 allows.

use crate::conditions::Answer;

/// Bytes of a body: `start..end` of `size`, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranged {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last one.
    pub end: u64,
    /// The length of the whole.
    pub size: u64,
}

impl Ranged {
    /// The value of Content-Range (RFC 9110 14.4).
    pub fn content_range(&self) -> String {
        format!("bytes {}-{}/{}", self.start, self.end - 1, self.size)
    }
}

/// Reads a Range field against a body of `size` bytes.
pub(crate) fn select(field: &[u8], size: u64) -> Answer {
    let Some(spec) = only_spec(field) else { return Answer::Whole };
    let Some(dash) = memchr::memchr(b'-', spec) else { return Answer::Whole };
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    let (start, end) = match (first, last) {
        (b"", length) => match number(length) {
            // A suffix of an empty body is satisfiable, and no Content-Range can say so.
            Some(length) if size > 0 || length == 0 => (size.saturating_sub(length), size),
            _ => return Answer::Whole,
        },
        (first, b"") => match number(first) {
            Some(first) => (first, size),
            None => return Answer::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, size.min(last.saturating_add(1))),
            _ => return Answer::Whole,
        },
    };
    if start < end { Answer::Part(Ranged { start, end, size }) } else { Answer::Unsatisfiable }
}

/// The one range that follows `bytes=`.
fn only_spec(field: &[u8]) -> Option<&[u8]> {
    let equals = memchr::memchr(b'=', field)?;
    let is_bytes = field[..equals].trim_ascii().eq_ignore_ascii_case(b"bytes");
    let spec = field[equals + 1..].trim_ascii();
    (is_bytes && !spec.contains(&b',')).then_some(spec)
}

/// `1*DIGIT`; what does not fit is as good as infinite.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add =
        |value: u64, digit: &u8| value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}
