//! Backups: records as a stream with checksums.
//!
//! Written from a scan, read by a restore. Invariant: one flipped or missing byte is detected, and
//! no record after it is returned.
//!
//! ```text
//!  backup:  "OUTBOARD ENTITIES 1\n" │ record … │ end
//!  record:  u32 id length │ u32 value length │ u64 expires_ms │ id │ value │ u64 checksum of these
//!  end:     u32 0xffffffff │ u32 0 │ u64 how many records │ u64 checksum of these
//! ```

use crate::record::Record;
use std::fmt;
use std::io::{self, Read};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8] = b"OUTBOARD ENTITIES 1\n";
const HEAD_BYTES: usize = 16;
const END: u32 = u32::MAX;

/// Appends the head of a backup.
pub fn write_backup_head(out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
}

/// Appends a record, or the end after `Err(records)`.
pub fn write_backup_record(out: &mut Vec<u8>, record: Result<(&[u8], &Record), u64>) {
    let from = out.len();
    match record {
        Ok((id, record)) => {
            out.extend_from_slice(&(id.len() as u32).to_le_bytes());
            out.extend_from_slice(&(record.value.len() as u32).to_le_bytes());
            out.extend_from_slice(&record.expires_ms.unwrap_or(0).to_le_bytes());
            out.extend_from_slice(id);
            out.extend_from_slice(&record.value);
        }
        Err(records) => {
            out.extend_from_slice(&END.to_le_bytes());
            out.extend_from_slice(&0_u32.to_le_bytes());
            out.extend_from_slice(&records.to_le_bytes());
        }
    }
    let checksum = xxh3_64(&out[from..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// A record of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The key.
    pub id: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// When the record expires, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// Why a backup cannot be read to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The file is not a backup.
    NotABackup,
    /// The backup is damaged or truncated.
    Damaged {
        /// Records that were read before.
        after_records: u64,
    },
    /// Reading failed.
    Io(io::Error),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotABackup => f.write_str("this is not a backup of an entity store"),
            Self::Damaged { after_records } => {
                write!(f, "the backup is damaged or truncated after {after_records} records")
            }
            Self::Io(error) => write!(f, "the backup cannot be read: {error}"),
        }
    }
}

impl std::error::Error for BackupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::NotABackup | Self::Damaged { .. } => None,
        }
    }
}

/// Reads a backup, record by record. An error ends the iterator; a backup without one is complete.
pub fn read_backup(
    mut from: impl Read,
    max_value_bytes: usize,
) -> impl Iterator<Item = Result<Restored, BackupError>> {
    let mut records = 0;
    let mut state = State::Head;
    std::iter::from_fn(move || {
        if let State::Head = state {
            state = State::Records;
            let mut magic = [0; MAGIC.len()];
            if from.read_exact(&mut magic).is_err() || magic != MAGIC {
                state = State::Over;
                return Some(Err(BackupError::NotABackup));
            }
        }
        if let State::Over = state {
            return None;
        }
        let next = next(&mut from, records, max_value_bytes).transpose();
        match &next {
            Some(Ok(_)) => records += 1,
            _ => state = State::Over,
        }
        next
    })
}

enum State {
    Head,
    Records,
    Over,
}

fn next(
    from: &mut impl Read,
    records: u64,
    max_bytes: usize,
) -> Result<Option<Restored>, BackupError> {
    let damaged = || BackupError::Damaged { after_records: records };
    let fill = |from: &mut dyn Read, out: &mut [u8]| {
        from.read_exact(out).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged(),
            _ => BackupError::Io(error),
        })
    };
    let mut bytes = vec![0; HEAD_BYTES];
    fill(from, &mut bytes)?;
    let (lengths, last) = bytes.split_at(8);
    let len = |at: usize| lengths[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let last = last.try_into().map_or(0, u64::from_le_bytes);
    let (id_len, value_len) = (len(0), len(4));
    let is_end = id_len == END;
    let body = if is_end { 0 } else { id_len as usize + value_len as usize };
    if body > max_bytes.saturating_add(HEAD_BYTES << 10) {
        return Err(damaged());
    }
    bytes.resize(HEAD_BYTES + body, 0);
    fill(from, &mut bytes[HEAD_BYTES..])?;
    let mut checksum = [0; 8];
    fill(from, &mut checksum)?;
    let is_wrong_end = is_end && (value_len != 0 || last != records);
    if is_wrong_end || xxh3_64(&bytes) != u64::from_le_bytes(checksum) {
        return Err(damaged());
    }
    if is_end {
        return Ok(None);
    }
    let value = bytes.split_off(HEAD_BYTES + id_len as usize);
    let id = bytes.split_off(HEAD_BYTES);
    Ok(Some(Restored { id, value, expires_ms: Some(last).filter(|ms| *ms != 0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup() -> Vec<u8> {
        let mut out = Vec::new();
        write_backup_head(&mut out);
        for (id, expires_ms) in [(&b"a"[..], None), (b"\0\xff", Some(99))] {
            let record = Record { version: 1, expires_ms, value: (*b"some value").into() };
            write_backup_record(&mut out, Ok((id, &record)));
        }
        write_backup_record(&mut out, Err(2));
        out
    }

    #[test]
    fn a_backup_comes_back_as_it_was() {
        let all: Result<Vec<_>, _> = read_backup(&backup()[..], 1000).collect();
        let restored = |id: &[u8], expires_ms| Restored {
            id: id.to_vec(),
            value: b"some value".to_vec(),
            expires_ms,
        };
        assert_eq!(all.unwrap(), [restored(b"a", None), restored(b"\0\xff", Some(99))]);
    }

    #[test]
    fn an_end_with_a_value_is_none() {
        let mut backup = Vec::new();
        write_backup_head(&mut backup);
        let end = [END.to_le_bytes(), 9_u32.to_le_bytes(), [0; 4], [0; 4]].concat();
        backup.extend_from_slice(&end);
        backup.extend_from_slice(&xxh3_64(&end).to_le_bytes());
        assert!(read_backup(&backup[..], 1000).any(|record| record.is_err()));
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_noticed() {
        let whole = backup();
        for cut in 0..whole.len() {
            assert!(read_backup(&whole[..cut], 1000).any(|record| record.is_err()), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            assert!(read_backup(&damaged[..], 1000).any(|record| record.is_err()), "byte {at}");
        }
    }
}
