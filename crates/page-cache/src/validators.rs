//! ETag and Last-Modified (RFC 9110 8.8): what a response is compared by.

use crate::date;
use crate::message::Fields;

/// The validators of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Validators<'a> {
    /// The entity-tag as written, with its quotes and, if it is weak, `W/`.
    pub etag: Option<&'a [u8]>,
    /// Last-Modified as written, if it is a date.
    pub last_modified: Option<&'a [u8]>,
}

impl<'a> Validators<'a> {
    /// Of a response; fields that cannot be read are as good as absent.
    pub fn of(fields: Fields<'a>) -> Self {
        let etag = fields.first("etag").filter(|etag| EntityTag::parse(etag).is_some());
        let last_modified =
            fields.first("last-modified").filter(|value| date::parse(value).is_some());
        Self { etag, last_modified }
    }

    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// Last-Modified in seconds since 1970.
    pub fn last_modified_s(&self) -> Option<u64> {
        self.last_modified.and_then(date::parse)
    }
}

/// An entity-tag (RFC 9110 8.8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntityTag<'a> {
    pub(crate) is_weak: bool,
    /// With its quotes.
    pub(crate) opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads a field that is one tag.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::read(text)?;
        rest.is_empty().then_some(tag)
    }

    /// Reads the tag at the start of the text; gives what follows it.
    pub(crate) fn read(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let opaque = text.strip_prefix(b"W/").unwrap_or(text);
        let is_weak = opaque.len() < text.len();
        let end = memchr::memchr(b'"', opaque.strip_prefix(b"\"")?)? + 2;
        let is_etagc = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        let (opaque, rest) = opaque.split_at(end);
        opaque.iter().all(is_etagc).then_some((Self { is_weak, opaque }, rest))
    }

    /// RFC 9110 8.8.3.2.
    pub(crate) fn matches_strongly(self, other: Self) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// RFC 9110 8.8.3.2.
    pub(crate) fn matches_weakly(self, other: Self) -> bool {
        self.opaque == other.opaque
    }
}
