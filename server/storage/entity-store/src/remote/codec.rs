//! The bytes of calls and replies: integers in little-endian, byte strings behind their length.
//!
//! Used by [`super::call`]. Invariant: reading never goes beyond the frame, and malformed bytes are `None`.

use crate::record::Record;
use std::ops::Bound;

/// Writes a frame.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn optional(&mut self, value: Option<u64>) {
        self.u8(u8::from(value.is_some()));
        self.u64(value.unwrap_or(0));
    }

    pub(super) fn many<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.u64(items.len() as u64);
        items.iter().for_each(|item| each(self, item));
    }

    pub(super) fn bound(&mut self, bound: &Bound<Vec<u8>>) {
        let (kind, bytes) = match bound {
            Bound::Unbounded => (0, &[][..]),
            Bound::Included(bytes) => (1, &bytes[..]),
            Bound::Excluded(bytes) => (2, &bytes[..]),
        };
        self.u8(kind);
        self.bytes(bytes);
    }

    pub(super) fn record(&mut self, record: Option<&Record>) {
        self.u8(u8::from(record.is_some()));
        let Some(record) = record else { return };
        self.u64(record.version);
        self.optional(record.expires_ms);
        self.bytes(&record.value);
    }
}

/// Reads a frame.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u64()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn optional(&mut self) -> Option<Option<u64>> {
        let is_there = self.u8()? == 1;
        let value = self.u64()?;
        Some(is_there.then_some(value))
    }

    /// A list; nothing is reserved for a length that may be wrong.
    pub(super) fn many<T>(&mut self, each: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        for _ in 0..self.u64()? {
            items.push(each(self)?);
        }
        Some(items)
    }

    pub(super) fn bound(&mut self) -> Option<Bound<Vec<u8>>> {
        let (kind, bytes) = (self.u8()?, self.bytes()?.to_vec());
        Some(match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(bytes),
            2 => Bound::Excluded(bytes),
            _ => return None,
        })
    }

    pub(super) fn record(&mut self) -> Option<Option<Record>> {
        if self.u8()? == 0 {
            return Some(None);
        }
        let (version, expires_ms) = (self.u64()?, self.optional()?);
        Some(Some(Record { version, expires_ms, value: self.bytes()?.into() }))
    }
}
