//! Records: a value, its version and its expiry.
//!
//! In the levels a record is `u64 version │ u64 expires_ms, 0 for never │ value`, little-endian.

use std::sync::Arc;

const HEAD_BYTES: usize = 16;

/// The longest key, in bytes. The format of `lsm-tree` allows 65535.
pub const ID_MAX_BYTES: usize = 4096;

/// Whether a key is valid.
pub fn is_id(id: &[u8]) -> bool {
    (1..=ID_MAX_BYTES).contains(&id.len())
}

/// The value under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Grows with each write to the namespace, and is unique there.
    pub version: u64,
    /// When the record expires, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// Any bytes, possibly none.
    pub value: Arc<[u8]>,
}

impl Record {
    /// Whether the record has not expired.
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

    /// `None` if the bytes are too short.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, value) = bytes.split_at_checked(HEAD_BYTES)?;
        let (version, expires) = head.split_at(8);
        Some(Self {
            version: u64::from_le_bytes(version.try_into().ok()?),
            expires_ms: expires_ms(expires.try_into().ok()?),
            value: value.into(),
        })
    }

    /// The expiry of an encoded record.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_expires_at_its_time_and_not_before() {
        let record = |expires_ms| Record { version: 1, expires_ms, value: [].into() };
        for (expires_ms, now_ms, is_alive) in [
            (None, u64::MAX, true),
            (Some(100), 99, true),
            (Some(100), 100, false),
            (Some(1), 0, true),
        ] {
            assert_eq!(record(expires_ms).is_alive(now_ms), is_alive, "{expires_ms:?} at {now_ms}");
        }
    }

    #[test]
    fn keys_have_one_byte_to_the_most() {
        for (bytes, expected) in
            [(0, false), (1, true), (ID_MAX_BYTES, true), (ID_MAX_BYTES + 1, false)]
        {
            assert_eq!(is_id(&vec![0; bytes]), expected, "{bytes} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_that_is_encoded_so_or_too_short(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let decoded = Record::decode(&bytes);
            prop_assert_eq!(decoded.is_some(), bytes.len() >= HEAD_BYTES);
            let expires_ms = Record::encoded_expires_ms(&bytes);
            match decoded {
                Some(record) => {
                    prop_assert_eq!(record.encode(), bytes);
                    prop_assert_eq!(record.expires_ms, expires_ms);
                }
                None => prop_assert_eq!(expires_ms, None),
            }
        }
    }
}
