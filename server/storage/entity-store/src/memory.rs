//! A namespace in memory, which is lost when the server stops.
//!
//! Used by [`crate::Namespace`]. Invariant: the memory limit holds; expired records are removed
//! first.

use crate::change::{Change, Write, Written};
use crate::error::StoreError;
use crate::record::{Record, unix_ms};
use crate::types::{Piece, Stats};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Memory of a record beside its key and value.
const RECORD_BYTES: usize = 128;

/// The number of expired records that a write removes.
const EXPIRED_PER_WRITE: usize = 64;

/// A namespace in memory.
pub(crate) struct Memory {
    inner: RefCell<Inner>,
    max_bytes: usize,
    writes: Cell<u64>,
}

#[derive(Default)]
struct Inner {
    records: BTreeMap<Box<[u8]>, Record>,
    /// Records with an expiry, soonest first.
    expirations: BTreeSet<(u64, Box<[u8]>)>,
    used_bytes: usize,
    next_version: u64,
}

impl Memory {
    pub(crate) fn new(max_bytes: usize) -> Self {
        let inner = Inner { next_version: unix_ms() << 20, ..Inner::default() };
        Self { inner: RefCell::new(inner), max_bytes, writes: Cell::new(0) }
    }

    pub(crate) fn get(&self, id: &[u8]) -> Option<Record> {
        let now_ms = unix_ms();
        let inner = self.inner.borrow();
        inner.records.get(id).filter(|record| record.is_alive(now_ms)).cloned()
    }

    /// See [`crate::Namespace::show_many`].
    pub(crate) fn show_many(&self, ids: &[&[u8]], mut each: impl FnMut(Option<&Record>)) {
        let (now_ms, inner) = (unix_ms(), self.inner.borrow());
        for id in ids {
            each(inner.records.get(*id).filter(|record| record.is_alive(now_ms)));
        }
    }

    pub(crate) fn write(&self, write: &Write) -> Result<Written, StoreError> {
        self.writes.set(self.writes.get() + 1);
        let now_ms = unix_ms();
        let inner = &mut *self.inner.borrow_mut();
        inner.remove_expired(now_ms, self.max_bytes.saturating_sub(max_bytes(write)));
        let old = inner.records.get(&write.id);
        let present = old.filter(|record| record.is_alive(now_ms));
        let existed = Some(present.is_some());
        let record = write.apply(present, inner.next_version, now_ms)?;
        let more = record.as_ref().map_or(0, |record| bytes(&write.id, record));
        let less = old.map_or(0, |record| bytes(&write.id, record));
        if more > less && inner.used_bytes - less + more > self.max_bytes {
            return Err(StoreError::Full);
        }
        inner.next_version += 1;
        inner.replace(&write.id, record.clone());
        Ok(Written { record, existed })
    }

    /// Inserts a record of another process as it is, which had room for it.
    pub(crate) fn adopt(&self, id: &[u8], record: Record) {
        let inner = &mut *self.inner.borrow_mut();
        inner.next_version = inner.next_version.max(record.version + 1);
        inner.replace(id, Some(record));
    }

    /// Records from `start` on, about `piece_bytes` of them, and the position after them.
    pub(crate) fn scan_on(
        &self,
        start: Bound<Vec<u8>>,
        end: &Bound<Vec<u8>>,
        piece_bytes: usize,
    ) -> (Piece, Option<Bound<Vec<u8>>>) {
        let (now_ms, inner) = (unix_ms(), self.inner.borrow());
        let (mut piece, mut taken) = (Piece::new(), 0);
        if is_empty(&start, end) {
            return (piece, None);
        }
        let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
        for (id, record) in inner.records.range::<[u8], _>(range) {
            if record.is_alive(now_ms) {
                taken += id.len() + record.value.len();
                piece.push((id.clone(), record.clone()));
            }
            if taken >= piece_bytes {
                return (piece, Some(Bound::Excluded(id.to_vec())));
            }
        }
        (piece, None)
    }

    pub(crate) fn stats(&self) -> Stats {
        let inner = self.inner.borrow();
        Stats {
            records: inner.records.len() as u64,
            cached_records: inner.records.len() as u64,
            cached_bytes: inner.used_bytes as u64,
            writes: self.writes.get(),
            ..Stats::default()
        }
    }
}

impl Inner {
    fn replace(&mut self, id: &[u8], record: Option<Record>) {
        if let Some(old) = self.records.remove(id) {
            self.used_bytes -= bytes(id, &old);
            if let Some(expires_ms) = old.expires_ms {
                self.expirations.remove(&(expires_ms, id.into()));
            }
        }
        if let Some(record) = record {
            self.used_bytes += bytes(id, &record);
            if let Some(expires_ms) = record.expires_ms {
                self.expirations.insert((expires_ms, id.into()));
            }
            self.records.insert(id.into(), record);
        }
    }

    /// Removes expired records: a few, since very many may have expired at once, and more while the
    /// namespace takes more than `max_bytes`.
    fn remove_expired(&mut self, now_ms: u64, max_bytes: usize) {
        let mut removed = 0;
        while let Some((expires_ms, id)) = self.expirations.first()
            && *expires_ms <= now_ms
            && (removed < EXPIRED_PER_WRITE || self.used_bytes > max_bytes)
        {
            let id = id.clone();
            self.replace(&id, None);
            removed += 1;
        }
    }
}

/// Whether the range is empty. `BTreeMap::range` panics for some empty ranges.
pub(crate) fn is_empty(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    let (Bound::Included(from) | Bound::Excluded(from)) = start else { return false };
    match end {
        Bound::Unbounded => false,
        Bound::Excluded(to) => from >= to,
        Bound::Included(to) => from > to || (from == to && matches!(start, Bound::Excluded(_))),
    }
}

/// The largest size of the record that a write leaves.
fn max_bytes(write: &Write) -> usize {
    let value_bytes = match &write.change {
        Change::Put { value, .. } => value.len(),
        // A number.
        Change::Increment { .. } => 32,
        Change::Delete => 0,
    };
    RECORD_BYTES + 2 * write.id.len() + value_bytes
}

fn bytes(id: &[u8], record: &Record) -> usize {
    // The key is stored twice if the record expires.
    let names = if record.expires_ms.is_some() { 2 } else { 1 };
    RECORD_BYTES + names * id.len() + record.value.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Condition;

    #[test]
    fn records_that_expire_together_are_removed_in_batches() {
        let memory = Memory::new(1 << 20);
        for number in 0..1000 {
            let change = Change::Put { value: b"v"[..].into(), ttl_ms: Some(60_000) };
            let id = number.to_string().into_bytes().into();
            memory.write(&Write { id, change, condition: Condition::Always }).unwrap();
        }
        let later_ms = unix_ms() + 120_000;
        let mut inner = memory.inner.borrow_mut();
        inner.remove_expired(later_ms, usize::MAX);
        assert_eq!(inner.records.len(), 1000 - EXPIRED_PER_WRITE);
        inner.remove_expired(later_ms, 0);
        assert_eq!((inner.records.len(), inner.expirations.len(), inner.used_bytes), (0, 0, 0));
    }

    fn put(id: &[u8], bytes: usize, ttl_ms: Option<u64>) -> Write {
        let change = Change::Put { value: vec![7; bytes].into(), ttl_ms };
        Write { id: id.into(), change, condition: Condition::Always }
    }

    #[test]
    fn a_write_of_another_process_stays_as_it_was_and_versions_go_on() {
        let memory = Memory::new(1 << 20);
        let there = Record { version: 1 << 62, expires_ms: None, value: (*b"v").into() };
        memory.adopt(b"a", there.clone());
        assert_eq!(memory.get(b"a"), Some(there));
        let written = memory.write(&put(b"b", 1, None)).unwrap().record.unwrap();
        assert_eq!(written.version, (1 << 62) + 1);
        memory.adopt(b"c", Record { version: 1, ..written });
        let written = memory.write(&put(b"d", 1, None)).unwrap().record.unwrap();
        assert_eq!(written.version, (1 << 62) + 2, "an older one does not set them back");
    }

    #[test]
    fn a_record_that_becomes_smaller_is_written_to_a_full_memory() {
        let memory = Memory::new(RECORD_BYTES + 1 + 100);
        memory.write(&put(b"a", 100, None)).unwrap();
        assert_eq!(memory.write(&put(b"a", 101, None)), Err(StoreError::Full));
        assert_eq!(memory.get(b"a").unwrap().value.len(), 100, "nothing was changed");
        let written = memory.write(&put(b"a", 99, None)).unwrap();
        assert_eq!(written.existed, Some(true));
        assert_eq!(memory.write(&put(b"b", 0, None)), Err(StoreError::Full));
    }

    #[test]
    fn a_range_is_empty_exactly_where_no_key_is_in_it() {
        let keys: Vec<Vec<u8>> = (0..4).map(|byte| vec![byte]).collect();
        let mut bounds = vec![Bound::Unbounded];
        bounds.extend(keys.iter().cloned().map(Bound::Included));
        bounds.extend(keys.iter().cloned().map(Bound::Excluded));
        let memory = Memory::new(1 << 20);
        keys.iter().for_each(|key| drop(memory.write(&put(key, 1, None))));
        for start in &bounds {
            for end in &bounds {
                let expected: Vec<&Vec<u8>> = keys
                    .iter()
                    .filter(|key| match start {
                        Bound::Included(start) => *key >= start,
                        Bound::Excluded(start) => *key > start,
                        Bound::Unbounded => true,
                    })
                    .filter(|key| match end {
                        Bound::Included(end) => *key <= end,
                        Bound::Excluded(end) => *key < end,
                        Bound::Unbounded => true,
                    })
                    .collect();
                let (piece, rest) = memory.scan_on(start.clone(), end, usize::MAX);
                let found: Vec<Vec<u8>> = piece.into_iter().map(|(id, _)| id.into_vec()).collect();
                assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{start:?} {end:?}");
                assert_eq!(rest, None);
                assert!(!is_empty(start, end) || expected.is_empty(), "{start:?} {end:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_limit_holds_and_every_byte_is_counted(
            acts in proptest::collection::vec((0..6_u8, 0..4_u8, 0..400_usize), 0..120),
        ) {
            const MAX: usize = 6 * (RECORD_BYTES + 200);
            let memory = Memory::new(MAX);
            for (id, act, size) in acts {
                let write = match act {
                    0 => Write { change: Change::Delete, ..put(&[id], 0, None) },
                    1 => put(&[id], size, Some(0)),
                    2 => put(&[id], size, Some(60_000)),
                    _ => put(&[id], size, None),
                };
                let before = memory.get(&[id]);
                match memory.write(&write) {
                    Ok(written) => assert_eq!(written.existed, Some(before.is_some())),
                    Err(error) => {
                        assert_eq!(error, StoreError::Full);
                        assert_eq!(memory.get(&[id]), before);
                    }
                }
                let inner = memory.inner.borrow();
                let sizes = inner.records.iter().map(|(id, record)| bytes(id, record));
                assert_eq!(inner.used_bytes, sizes.sum::<usize>());
                assert!(inner.used_bytes <= MAX);
                let expiring = inner.records.values().filter(|record| record.expires_ms.is_some());
                assert_eq!(inner.expirations.len(), expiring.count());
            }
        }
    }
}
