//! [`Batch`]: an operation of a worker's `Outboard\KV`: several reads, several writes or a part of
//! a scan.
//!
//! Read from the body of a fetch of `entities:NAMESPACE`, executed by [`super::execute`];
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

use outboard_entity_store::{Change, Condition, Write};
use std::ops::Bound;

pub(super) const NONE: u32 = u32::MAX;
const READS: u8 = 1;
const WRITES: u8 = 2;
const SCAN: u8 = 3;

/// Entries that are read in a step, and their bytes.
pub(super) const STEP_ENTRIES: usize = 512;
const STEP_BYTES: usize = 128 << 10;
/// A write without its bytes.
const WRITE_LEAST_BYTES: usize = 30;

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
    pub(super) fn count(bytes: &[u8]) -> usize {
        let count = match bytes.split_first() {
            Some((&(READS | WRITES), mut rest)) => take_u32(&mut rest),
            _ => None,
        };
        // At most as many as the bytes can hold.
        count.map_or(0, |count| (count as usize).min(bytes.len() / 4))
    }

    /// Reads all of it; `None` if it is invalid.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut reading = Reading::begin(bytes)?;
        while !reading.step()? {}
        Some(reading.batch)
    }
}

/// A batch that is read in steps: a worker may send hundreds of thousands of entries in one.
pub(crate) struct Reading<'a> {
    /// What was read of it.
    pub(crate) batch: Batch<'a>,
    /// The lengths of the ids to read.
    lengths: &'a [[u8; 4]],
    /// The number of writes to read.
    writes: usize,
    rest: &'a [u8],
}

impl<'a> Reading<'a> {
    /// `None` if it is invalid.
    pub(crate) fn begin(bytes: &'a [u8]) -> Option<Self> {
        let most = Batch::count(bytes);
        let (kind, mut rest) = bytes.split_first()?;
        let (mut lengths, mut writes) = (&[][..], 0);
        let batch = match *kind {
            READS => {
                let count = take_u32(&mut rest)? as usize;
                lengths = take(&mut rest, count.checked_mul(4)?)?.as_chunks::<4>().0;
                Batch::Reads(Vec::with_capacity(count))
            }
            WRITES => {
                writes = take_u32(&mut rest)? as usize;
                Batch::Writes(Vec::with_capacity(most.min(rest.len() / WRITE_LEAST_BYTES)))
            }
            SCAN => scan(&mut rest)?,
            _ => return None,
        };
        Some(Self { batch, lengths, writes, rest })
    }

    /// Reads some more; true at the end, `None` if it is invalid.
    pub(crate) fn step(&mut self) -> Option<bool> {
        let before = self.rest.len();
        for _ in 0..STEP_ENTRIES {
            match &mut self.batch {
                Batch::Reads(ids) => {
                    let Some((length, lengths)) = self.lengths.split_first() else {
                        return Some(true);
                    };
                    ids.push(take(&mut self.rest, u32::from_le_bytes(*length) as usize)?);
                    self.lengths = lengths;
                }
                Batch::Writes(_) if self.writes == 0 => return Some(true),
                Batch::Writes(writes) => {
                    writes.push(take_write(&mut self.rest)?);
                    self.writes -= 1;
                }
                Batch::Scan { .. } => return Some(true),
            }
            if before - self.rest.len() >= STEP_BYTES {
                break;
            }
        }
        Some(false)
    }
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

    #[test]
    fn a_long_batch_is_read_in_many_short_steps() {
        const COUNT: usize = 100_000;
        let count = (COUNT as u32).to_le_bytes();
        let reads = [&[READS][..], &count, &vec![0; 4 * COUNT]].concat();
        let mut write = [0; WRITE_LEAST_BYTES];
        write[0] = 2;
        let writes = [&[WRITES][..], &count, &write.repeat(COUNT)].concat();
        for bytes in [reads, writes] {
            let (mut reading, mut steps) = (Reading::begin(&bytes).unwrap(), 1);
            while !reading.step().unwrap() {
                steps += 1;
            }
            assert_eq!(steps, COUNT / STEP_ENTRIES + 1);
        }
        // A few long values are many bytes.
        let mut write = [&write[..18], &0_u32.to_le_bytes(), &(1_u32 << 20).to_le_bytes()].concat();
        write.extend_from_slice(&vec![0; 4 + (1 << 20)]);
        let writes = [&[WRITES, 3, 0, 0, 0][..], &write.repeat(3)].concat();
        let mut reading = Reading::begin(&writes).unwrap();
        assert_eq!([(); 4].map(|()| reading.step()), [false, false, false, true].map(Some));
    }
}
