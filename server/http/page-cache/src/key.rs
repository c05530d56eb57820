//! The key of a response, and the hash of what selects responses.
//!
//! Invariant: equal requests have equal keys, whatever the case of their host or the spelling of the
//! port.

use smallvec::SmallVec;
use std::sync::Arc;

/// The key of a response: `scheme://authority/path?query`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) path_start: u32,
}

impl Key {
    /// The key of a request.
    pub fn new(is_https: bool, authority: &[u8], path_and_query: &[u8]) -> Self {
        LookupKey::new(is_https, authority, path_and_query).to_key()
    }

    /// The key as one text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The path with the query.
    pub fn path_and_query(&self) -> &[u8] {
        self.bytes.get(self.path_start as usize..).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The key of a request that is looked up, without an allocation for ordinary URLs.
#[derive(Debug)]
pub struct LookupKey {
    bytes: SmallVec<[u8; 256]>,
    path_start: u32,
}

impl LookupKey {
    /// The key of a request. The authority is case-insensitive (RFC 9110 4.2.3).
    pub fn new(is_https: bool, authority: &[u8], path_and_query: &[u8]) -> Self {
        let (scheme, port): (&[u8], &[u8]) =
            if is_https { (b"https://", b":443") } else { (b"http://", b":80") };
        let authority = authority.strip_suffix(port).unwrap_or(authority);
        let mut bytes: SmallVec<[u8; 256]> = SmallVec::new();
        bytes.reserve(scheme.len() + authority.len() + path_and_query.len());
        bytes.extend_from_slice(scheme);
        bytes.extend(authority.iter().map(u8::to_ascii_lowercase));
        let path_start = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(path_and_query);
        Self { bytes, path_start }
    }

    /// The same key for longer.
    pub fn to_key(&self) -> Key {
        Key { bytes: self.bytes[..].into(), path_start: self.path_start }
    }
}

impl AsRef<[u8]> for LookupKey {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The hash of a tag or a variant: FNV-1a, which is equal in every process, so that entries on disk can
/// be purged. Tags with equal hashes are purged together.
pub(crate) fn stable_hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
