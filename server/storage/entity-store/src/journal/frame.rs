//! Frames: the writes of one batch, all or none.

use crate::record::{Record, is_id};
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(super) const MAGIC: [u8; 4] = *b"ENTB";
/// Magic, length and checksum.
pub(super) const HEAD_BYTES: usize = 16;
const ENTRY_HEAD_BYTES: usize = 25;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// A batch that is being encoded.
#[derive(Debug)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
}

/// One decoded write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) id: &'a [u8],
    pub(crate) version: u64,
    /// The record after the write; `None` after a delete.
    pub(crate) record: Option<Record>,
}

impl Frame {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; HEAD_BYTES] }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(HEAD_BYTES);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == HEAD_BYTES
    }

    pub(crate) fn push(&mut self, id: &[u8], version: u64, record: Option<&Record>) {
        let value = record.map_or(&[][..], |record| &record.value);
        let expires_ms = record.and_then(|record| record.expires_ms).unwrap_or(0);
        self.bytes.push(if record.is_some() { PUT } else { DELETE });
        self.bytes.extend_from_slice(&version.to_le_bytes());
        self.bytes.extend_from_slice(&expires_ms.to_le_bytes());
        self.bytes.extend_from_slice(&(id.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(id);
        self.bytes.extend_from_slice(value);
    }

    /// Completes the head and returns all bytes.
    pub(super) fn seal(&mut self, salt: u64) -> &[u8] {
        let (head, entries) = self.bytes.split_at_mut(HEAD_BYTES);
        let len = (entries.len() as u32).to_le_bytes();
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&len);
        head[8..].copy_from_slice(&checksum(salt, entries).to_le_bytes());
        &self.bytes
    }
}

fn checksum(salt: u64, entries: &[u8]) -> u64 {
    xxh3_64_with_seed(entries, salt ^ entries.len() as u64)
}

/// The entries and the length of the frame at the start of `bytes`, if it is whole.
pub(super) fn read(bytes: &[u8], salt: u64) -> Option<(&[u8], usize)> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    if head[..4] != MAGIC {
        return None;
    }
    let len = u32::from_le_bytes(head[4..8].try_into().ok()?) as usize;
    let entries = rest.get(..len)?;
    let expected = u64::from_le_bytes(head[8..].try_into().ok()?);
    (checksum(salt, entries) == expected).then_some((entries, HEAD_BYTES + len))
}

/// Removes the first entry; `None` at the end, and for bytes that no committer writes.
pub(super) fn next_entry<'a>(rest: &mut &'a [u8]) -> Option<Entry<'a>> {
    let (head, behind) = rest.split_at_checked(ENTRY_HEAD_BYTES)?;
    let u64_at = |at: usize| Some(u64::from_le_bytes(head[at..at + 8].try_into().ok()?));
    let len_at = |at: usize| Some(u32::from_le_bytes(head[at..at + 4].try_into().ok()?) as usize);
    let (version, expires_ms) = (u64_at(1)?, u64_at(9)?);
    let (id, behind) = behind.split_at_checked(len_at(17)?)?;
    if !is_id(id) {
        return None;
    }
    let (value, behind) = behind.split_at_checked(len_at(21)?)?;
    let expires_ms = Some(expires_ms).filter(|ms| *ms != 0);
    let record = match head[0] {
        PUT => Some(Record { version, expires_ms, value: value.into() }),
        DELETE => None,
        _ => return None,
    };
    *rest = behind;
    Some(Entry { id, version, record })
}
