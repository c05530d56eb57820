//! Borrowed views of requests and responses.
//!
//! Built by the gateway from a parsed head. Invariant: nothing is copied, except a value that came in
//! several lines.

use outboard_http1::Method;
use std::borrow::Cow;

/// A field line: the name as received, the value without the white space around it.
pub type Field<'a> = (&'a [u8], &'a [u8]);

/// The fields of a message, in order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a>(pub &'a [Field<'a>]);

impl<'a> Fields<'a> {
    /// The values of all lines called `name`, whatever its case.
    pub fn all(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.0.iter();
        lines
            .filter(move |(theirs, _)| theirs.eq_ignore_ascii_case(name.as_bytes()))
            .map(|&(_, value)| value)
    }

    /// The value of the first line called `name`.
    pub fn first(self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Whether there is a line called `name`.
    pub fn contains(self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// The values of all lines called `name` as one list (RFC 9110 5.3).
    pub fn joined(self, name: &str) -> Option<Cow<'a, [u8]>> {
        let mut values = self.all(name);
        let first = values.next()?;
        let mut joined = Cow::Borrowed(first);
        for value in values {
            let joined = joined.to_mut();
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(value);
        }
        Some(joined)
    }
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The path below the app's prefix, normalised, a slash first.
    pub path: &'a [u8],
    /// The fields.
    pub fields: Fields<'a>,
}

/// A response without its body.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a> {
    /// The final status code.
    pub status: u16,
    /// The fields.
    pub fields: Fields<'a>,
}

/// When a request was sent and its response received, in seconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// The request was sent.
    pub request_s: u64,
    /// The head of the response was received.
    pub response_s: u64,
}
