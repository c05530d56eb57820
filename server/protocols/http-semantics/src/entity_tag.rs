//! Entity-tags (RFC 9110 8.8.3), and the lists of them in If-Match and If-None-Match. Pure.

use std::fmt;

/// An entity-tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Whether `W/` precedes it.
    pub is_weak: bool,
    /// The opaque tag with its quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads a value that is one tag.
    ///
    /// # Examples
    ///
    /// ```
    /// use outboard_http_semantics::EntityTag;
    ///
    /// let (strong, weak) = (EntityTag::parse(b"\"v1\""), EntityTag::parse(b"W/\"v1\""));
    /// let (strong, weak) = strong.zip(weak).expect("both are valid");
    /// assert!(strong.matches_weakly(weak) && !strong.matches_strongly(weak));
    /// assert_eq!(EntityTag::parse(b"v1"), None);
    /// ```
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::parse_prefix(text)?;
        rest.is_empty().then_some(tag)
    }

    /// Reads the tag at the start of the text and returns what follows it.
    fn parse_prefix(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let opaque = text.strip_prefix(b"W/").unwrap_or(text);
        let is_weak = opaque.len() < text.len();
        let end = memchr::memchr(b'"', opaque.strip_prefix(b"\"")?)? + 2;
        let is_etagc = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        let (opaque, rest) = opaque.split_at(end);
        opaque.iter().all(is_etagc).then_some((Self { is_weak, opaque }, rest))
    }

    /// RFC 9110 8.8.3.2.
    pub fn matches_strongly(self, other: Self) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// RFC 9110 8.8.3.2.
    pub fn matches_weakly(self, other: Self) -> bool {
        self.opaque == other.opaque
    }
}

/// A list of entity-tags contains something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedTag;

impl fmt::Display for MalformedTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a list of entity-tags")
    }
}

impl std::error::Error for MalformedTag {}

/// Whether If-Match or If-None-Match is `*`, which matches every current representation.
pub fn is_any_tag(field: &[u8]) -> bool {
    field.trim_ascii() == b"*"
}

/// The tags of If-Match or If-None-Match; the first malformed one ends the list. Empty elements are
/// skipped (RFC 9110 5.6.1.2).
pub fn entity_tags(field: &[u8]) -> impl Iterator<Item = Result<EntityTag<'_>, MalformedTag>> {
    let mut rest = field;
    std::iter::from_fn(move || {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        if rest.is_empty() {
            return None;
        }
        let read = EntityTag::parse_prefix(rest).ok_or(MalformedTag);
        rest = read.map_or(&[][..], |(_, behind)| behind);
        Some(read.map(|(tag, _)| tag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_at_an_invalid_tag() {
        let read = |field: &'static str| -> Vec<_> {
            entity_tags(field.as_bytes()).map(|tag| tag.map(|tag| tag.opaque)).collect()
        };
        assert_eq!(read("\"a\",, W/\"b,\"\t"), [Ok(&b"\"a\""[..]), Ok(b"\"b,\"")]);
        assert_eq!(read("\"a\", b, \"c\""), [Ok(&b"\"a\""[..]), Err(MalformedTag)]);
        assert_eq!(read("\"a b\""), [Err(MalformedTag)]);
        assert_eq!(read("\"a"), [Err(MalformedTag)]);
        assert!(read(" , ").is_empty());
    }

    #[test]
    fn a_single_tag_has_nothing_behind_it() {
        let weak = EntityTag { is_weak: true, opaque: b"\"\"" };
        assert_eq!(EntityTag::parse(b"W/\"\""), Some(weak));
        for malformed in [&b"w/\"a\""[..], b"\"a\" ", b"a", b"", b"\"\x7f\""] {
            assert_eq!(EntityTag::parse(malformed), None, "{malformed:?}");
        }
    }
}
