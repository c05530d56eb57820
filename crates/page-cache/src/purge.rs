//! What a purge is about, and how that is written down.

use crate::entry::{Entry, Key};

/// Which stored responses a purge is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// All.
    All,
    /// One URL in all of its variants: with scheme and host, or a path with its query of any host.
    Url(Vec<u8>),
    /// Everything whose URL, or whose path, begins so.
    Prefix(Vec<u8>),
    /// Everything with one of these tags, as hashes that [`crate::Store::tag`] gave.
    Tags(Vec<u64>),
}

impl Selector {
    /// One URL, written in full or as a path with its query.
    pub fn url(text: &[u8]) -> Self {
        Self::Url(normalised(text))
    }

    /// All URLs that begin so, or all whose path begins so.
    pub fn prefix(text: &[u8]) -> Self {
        Self::Prefix(normalised(text))
    }

    /// As bytes, for a log of purges that outlives the process.
    pub fn encoded(&self) -> Vec<u8> {
        let (kind, text) = match self {
            Self::All => (b'a', Vec::new()),
            Self::Url(url) => (b'u', url.clone()),
            Self::Prefix(prefix) => (b'p', prefix.clone()),
            Self::Tags(tags) => (b't', tags.iter().flat_map(|tag| tag.to_le_bytes()).collect()),
        };
        let length = (text.len() as u32).to_le_bytes();
        [&[kind][..], &length, &text].concat()
    }

    /// The first of what [`Self::encoded`] gave, and what follows it. What cannot be read is all.
    pub fn decoded(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&kind, rest) = bytes.split_first()?;
        let whole = rest
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let Some((text, rest)) = whole else { return Some((Self::All, b"")) };
        let tag = |tag: &[u8; 8]| u64::from_le_bytes(*tag);
        Some(match kind {
            b'u' => (Self::Url(text.to_vec()), rest),
            b'p' => (Self::Prefix(text.to_vec()), rest),
            b't' => (Self::Tags(text.as_chunks::<8>().0.iter().map(tag).collect()), rest),
            _ => (Self::All, rest),
        })
    }

    /// Whether a response with this key and these tags (sorted) is meant.
    pub(crate) fn selects(&self, key: &Key, tags: &[u64]) -> bool {
        match self {
            Self::All => true,
            Self::Url(url) => comparable(key, url) == url,
            Self::Prefix(prefix) => comparable(key, prefix).starts_with(prefix),
            Self::Tags(wanted) => wanted.iter().any(|tag| tags.binary_search(tag).is_ok()),
        }
    }

    /// Whether an entry is meant.
    pub fn selects_entry(&self, entry: &Entry) -> bool {
        self.selects(&entry.key, &entry.tags)
    }
}

/// The part of a key that a selector speaks of: the path if it has no scheme.
fn comparable<'k>(key: &'k Key, text: &[u8]) -> &'k [u8] {
    if text.starts_with(b"/") { key.path_and_query() } else { key.bytes() }
}

/// A URL as keys spell it; a path as it is.
fn normalised(text: &[u8]) -> Vec<u8> {
    let (is_https, rest) = match (text.strip_prefix(b"http://"), text.strip_prefix(b"https://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return text.to_vec(),
    };
    let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
    let path: &[u8] = if end == rest.len() { b"/" } else { &rest[end..] };
    Key::new(is_https, &rest[..end], path).bytes().to_vec()
}
