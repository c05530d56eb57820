//! [`Batch`]: an operation of a worker's `Outboard\KV`: several reads, several writes or a part of
//! a scan.
//!
//! Read from the body of a fetch of `entities:NAMESPACE`, executed by [`execute`](mod@execute);
//! `runtime/kv.php` of the host is the other end. Numbers are little-endian; lengths precede the
//! bytes, so that PHP packs and unpacks them with one call. Invariant: every length is checked
//! against the remaining bytes.
//!
//! ```text
//!  reads:   u8 1 │ u32 count │ u32 id length … │ ids
//!    result:  u32 value length, NONE for no record … │ values
//!  writes:  u8 2 │ u32 count │ write …
//!    write:   u8 change │ u8 condition │ u64 ttl_ms or all ones │ i64 by │ u32 id length
//!             │ u32 value length │ u32 expected length │ id │ value │ expected
//!    result:  for each u8 0 absent, 1 present, 2 refused │ u32 value length │ value of a count
//!  scan:    u8 3 │ u32 max bytes │ u8 1 to exclude the start │ u32 start length
//!           │ u32 end length or NONE │ start │ end
//!    result:  u32 count │ u32 id length, u32 value length … │ id, value …
//! ```

mod execute;

pub(crate) use execute::{BatchResult, execute};

use outboard_entity_store::{Change, Condition, Write};
use std::ops::Bound;

const NONE: u32 = u32::MAX;
const READS: u8 = 1;
const WRITES: u8 = 2;
const SCAN: u8 = 3;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Batch<'a> {
    /// Read the records with these ids.
    Reads(Vec<&'a [u8]>),
    /// Apply these writes.
    Writes(Vec<Write>),
    /// Read records in order, until they have so many bytes.
    Scan { max_bytes: usize, start: Bound<Vec<u8>>, end: Bound<Vec<u8>> },
}

impl<'a> Batch<'a> {
    /// The number of ids or writes that it announces.
    fn count(bytes: &[u8]) -> usize {
        let count = match bytes.split_first() {
            Some((&(READS | WRITES), mut rest)) => take_u32(&mut rest),
            _ => None,
        };
        // At most as many as the bytes can hold.
        count.map_or(0, |count| (count as usize).min(bytes.len() / 4))
    }

    /// `None` if it is invalid.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            READS => reads(&mut rest).map(Self::Reads),
            WRITES => {
                let count = take_u32(&mut rest)?;
                (0..count).map(|_| take_write(&mut rest)).collect::<Option<_>>().map(Self::Writes)
            }
            SCAN => scan(&mut rest),
            _ => None,
        }
    }
}

fn reads<'a>(rest: &mut &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let count = take_u32(rest)? as usize;
    let lengths = take(rest, count.checked_mul(4)?)?;
    let (lengths, _) = lengths.as_chunks::<4>();
    lengths.iter().map(|length| take(rest, u32::from_le_bytes(*length) as usize)).collect()
}

fn take_write(rest: &mut &[u8]) -> Option<Write> {
    let kinds = take(rest, 2)?;
    let ttl_ms = Some(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?));
    let ttl_ms = ttl_ms.filter(|ttl_ms| *ttl_ms != u64::MAX);
    let by = i64::from_le_bytes(take(rest, 8)?.try_into().ok()?);
    let (id, value, expected) = (take_u32(rest)?, take_u32(rest)?, take_u32(rest)?);
    let id = take(rest, id as usize)?.into();
    let value = take(rest, value as usize)?.into();
    let expected = take(rest, expected as usize)?.into();
    let change = match kinds[0] {
        1 => Change::Put { value, ttl_ms },
        2 => Change::Delete,
        3 => Change::Increment { by, ttl_ms },
        _ => return None,
    };
    let condition = match kinds[1] {
        0 => Condition::Always,
        1 => Condition::Absent,
        2 => Condition::Present,
        3 => Condition::Value(expected),
        _ => return None,
    };
    Some(Write { id, change, condition })
}

fn scan<'a>(rest: &mut &[u8]) -> Option<Batch<'a>> {
    let max_bytes = take_u32(rest)? as usize;
    let excludes_start = take(rest, 1)?[0] == 1;
    let (start, end) = (take_u32(rest)?, take_u32(rest)?);
    let start = take(rest, start as usize)?.to_vec();
    let start = if excludes_start { Bound::Excluded(start) } else { Bound::Included(start) };
    let end = match end {
        NONE => Bound::Unbounded,
        length => Bound::Excluded(take(rest, length as usize)?.to_vec()),
    };
    Some(Batch::Scan { max_bytes, start, end })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_were_packed() {
        let bytes = [&[READS, 2, 0, 0, 0][..], &[1, 0, 0, 0, 2, 0, 0, 0], b"abb"].concat();
        assert_eq!(Batch::read(&bytes), Some(Batch::Reads(vec![b"a", b"bb"])));
        for len in 0..bytes.len() {
            assert_eq!(Batch::read(&bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn a_count_without_data_allocates_nothing() {
        for kind in [READS, WRITES] {
            assert_eq!(Batch::read(&[kind, 255, 255, 255, 255]), None);
        }
    }
}
