//! What a purge selects: URLs, prefixes and tags, and their encoding.

use crate::entry::Entry;
use crate::key::{Key, stable_hash};
use crate::message::Fields;
use outboard_http_semantics::list;

/// The most tags that are read of one response; it can still be purged by URL.
const TAGS_MAX: usize = 1000;

/// Which stored responses a purge selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// All.
    All,
    /// One URL in all variants: with scheme and host, or a path and query on any host.
    Url(Vec<u8>),
    /// All URLs, or all paths, with this prefix.
    Prefix(Vec<u8>),
    /// All with one of these tags, as hashes.
    Tags(Vec<u64>),
}

impl Selector {
    /// One URL, in full or as a path with its query.
    pub fn url(text: &[u8]) -> Self {
        Self::Url(normalised(text))
    }

    /// All URLs, or all paths, with this prefix.
    pub fn prefix(text: &[u8]) -> Self {
        Self::Prefix(normalised(text))
    }

    /// All with one of these tags.
    pub fn tags<'a>(tags: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::Tags(tags.into_iter().map(stable_hash).collect())
    }

    /// Encodes the selector for a log of purges that outlives the process.
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

    /// Decodes the first selector and returns the rest. Unreadable bytes select everything.
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

    /// Whether the purge selects a response with this key and these sorted tags.
    pub(crate) fn selects(&self, key: &Key, tags: &[u64]) -> bool {
        match self {
            Self::All => true,
            Self::Url(url) => comparable(key, url) == url,
            Self::Prefix(prefix) => comparable(key, prefix).starts_with(prefix),
            Self::Tags(wanted) => wanted.iter().any(|tag| tags.binary_search(tag).is_ok()),
        }
    }

    /// Whether the purge selects an entry.
    pub fn selects_entry(&self, entry: &Entry) -> bool {
        self.selects(&entry.key, &entry.tags)
    }
}

/// The part of a key that a selector compares: the path if it has no scheme.
fn comparable<'k>(key: &'k Key, text: &[u8]) -> &'k [u8] {
    if text.starts_with(b"/") { key.path_and_query() } else { key.bytes() }
}

/// A URL in the spelling of keys; a path unchanged.
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

/// The hashes of a response's tags, sorted, for [`Entry::new`].
pub fn tags_of(fields: Fields<'_>) -> Box<[u64]> {
    let mut hashes: Vec<u64> = tags(fields).map(stable_hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into()
}

/// The tags of a response in order: Cache-Tag separates them by commas, Surrogate-Key and xkey by
/// white space. Their case is significant.
pub fn tags<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
    let by_commas = fields.all("cache-tag").flat_map(list::elements);
    let by_space = ["surrogate-key", "xkey"].into_iter().flat_map(move |name| {
        fields.all(name).flat_map(|value| value.split(|byte| b" \t,".contains(byte)))
    });
    by_commas.chain(by_space).filter(|tag| !tag.is_empty()).take(TAGS_MAX)
}
