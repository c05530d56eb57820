//! A record: a value, its version, and when it ends.
//!
//! In the levels a record is `u64 version │ u64 expires_ms, 0 for never │ value`, little-endian.

use std::sync::Arc;

const HEAD_BYTES: usize = 16;

/// Longest name of a record, bytes. Sorted files have room for 65535, as `lsm-tree` writes them.
pub const ID_MAX_BYTES: usize = 4096;

/// Whether a record can have this name.
pub fn is_id(id: &[u8]) -> bool {
    (1..=ID_MAX_BYTES).contains(&id.len())
}

/// What is kept under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Grows with each write to the namespace; no two writes have the same.
    pub version: u64,
    /// Milliseconds since 1970 from which on it is no longer there.
    pub expires_ms: Option<u64>,
    /// Any bytes, none as well.
    pub value: Arc<[u8]>,
}

impl Record {
    /// Whether it is still there.
    pub fn is_alive(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES + self.value.len());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.expires_ms.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&self.value);
        out
    }

    /// `None` when it is shorter than a record can be.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, value) = bytes.split_at_checked(HEAD_BYTES)?;
        let (version, expires) = head.split_at(8);
        Some(Self {
            version: u64::from_le_bytes(version.try_into().ok()?),
            expires_ms: expires_ms(expires.try_into().ok()?),
            value: value.into(),
        })
    }

    /// When an encoded record ends, without reading the rest of it.
    pub(crate) fn encoded_expires_ms(bytes: &[u8]) -> Option<u64> {
        expires_ms(bytes.get(8..HEAD_BYTES)?.try_into().ok()?)
    }
}

fn expires_ms(raw: [u8; 8]) -> Option<u64> {
    Some(u64::from_le_bytes(raw)).filter(|ms| *ms != 0)
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
