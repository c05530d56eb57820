//! What a worker's `Outboard\KV` asks for: many reads, many writes or a part of a scan in one
//! operation.
//!
//! Read from the body of a fetch of `entities:NAMESPACE`, answered by [`answer`](mod@answer);
//! `runtime/kv.php` of the host is the other half. Numbers are little-endian; lengths stand together before the bytes,
//! so that PHP packs and unpacks them all at once. Invariant: every length is checked against what
//! is there.
//!
//! ```text
//!  reads:   u8 1 │ u32 count │ u32 id length … │ ids
//!    answer:  u32 value length, NONE for no record … │ values
//!  writes:  u8 2 │ u32 count │ write …
//!    write:   u8 change │ u8 condition │ u64 ttl_ms or all ones │ i64 by │ u32 id length
//!             │ u32 value length │ u32 expected length │ id │ value │ expected
//!    answer:  for each u8 0 gone, 1 there, 2 refused │ u32 value length │ value of a count
//!  scan:    u8 3 │ u32 most bytes │ u8 1 to leave out the start │ u32 start length
//!           │ u32 end length or NONE │ start │ end
//!    answer:  u32 count │ u32 id length, u32 value length … │ id, value …
//! ```

mod answer;

pub(crate) use answer::{Answer, answer};

use outboard_entity_store::{Change, Condition, Write};
use std::ops::Bound;

const NONE: u32 = u32::MAX;
const READS: u8 = 1;
const WRITES: u8 = 2;
const SCAN: u8 = 3;

/// What one operation asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Batch<'a> {
    /// The records with these names.
    Reads(Vec<&'a [u8]>),
    /// These, all together.
    Writes(Vec<Write>),
    /// Records in order, until their bytes are that many.
    Scan { most_bytes: usize, start: Bound<Vec<u8>>, end: Bound<Vec<u8>> },
}

impl<'a> Batch<'a> {
    /// How many names or writes it says that it has.
    fn count(asked: &[u8]) -> usize {
        let count = match asked.split_first() {
            Some((&(READS | WRITES), mut rest)) => take_u32(&mut rest),
            _ => None,
        };
        // As many as there are bytes for.
        count.map_or(0, |count| (count as usize).min(asked.len() / 4))
    }

    /// `None` for what cannot be read.
    pub(crate) fn read(asked: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = asked.split_first()?;
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
    let most_bytes = take_u32(rest)? as usize;
    let is_behind = take(rest, 1)?[0] == 1;
    let (start, end) = (take_u32(rest)?, take_u32(rest)?);
    let start = take(rest, start as usize)?.to_vec();
    let start = if is_behind { Bound::Excluded(start) } else { Bound::Included(start) };
    let end = match end {
        NONE => Bound::Unbounded,
        length => Bound::Excluded(take(rest, length as usize)?.to_vec()),
    };
    Some(Batch::Scan { most_bytes, start, end })
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
    fn names_are_read_as_they_were_packed() {
        let asked = [&[READS, 2, 0, 0, 0][..], &[1, 0, 0, 0, 2, 0, 0, 0], b"abb"].concat();
        assert_eq!(Batch::read(&asked), Some(Batch::Reads(vec![b"a", b"bb"])));
        for len in 0..asked.len() {
            assert_eq!(Batch::read(&asked[..len]), None, "{len}");
        }
    }

    #[test]
    fn a_count_that_nothing_follows_makes_no_room() {
        for kind in [READS, WRITES] {
            assert_eq!(Batch::read(&[kind, 255, 255, 255, 255]), None);
        }
    }
}
