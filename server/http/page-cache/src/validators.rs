//! The validators of a stored response as written: ETag and Last-Modified (RFC 9110 8.8).

use crate::message::Fields;
use outboard_http_semantics::{EntityTag, parse_http_date};

/// The validators of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Validators<'a> {
    /// The entity-tag as written, with its quotes and a possible `W/`.
    pub etag: Option<&'a [u8]>,
    /// Last-Modified as written, if it is a date.
    pub last_modified: Option<&'a [u8]>,
}

impl<'a> Validators<'a> {
    /// The validators of a response; malformed ones count as absent.
    pub fn of(fields: Fields<'a>) -> Self {
        let etag = fields.first("etag").filter(|etag| EntityTag::parse(etag).is_some());
        let last_modified =
            fields.first("last-modified").filter(|value| parse_http_date(value).is_some());
        Self { etag, last_modified }
    }

    /// Whether there is a validator.
    pub fn is_some(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// Last-Modified in seconds since 1970.
    pub fn last_modified_s(&self) -> Option<u64> {
        self.last_modified.and_then(parse_http_date)
    }
}
