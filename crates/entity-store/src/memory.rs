//! A namespace in memory: gone with the server, never waited for.
//!
//! Invariant: it never takes more than its budget; what has ended makes room first.

use crate::change::{Change, Write, Written};
use crate::error::StoreError;
use crate::namespace::{Piece, Stats};
use crate::record::{Record, unix_ms};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// What a record takes beside its name and its value.
const RECORD_BYTES: usize = 128;

/// Records that a write lets go of because they have ended.
const ENDED_A_WRITE: usize = 64;

/// A namespace in memory.
pub(crate) struct Memory {
    inner: RefCell<Inner>,
    max_bytes: usize,
    writes: Cell<u64>,
}

#[derive(Default)]
struct Inner {
    records: BTreeMap<Box<[u8]>, Record>,
    /// What ends, soonest first.
    endings: BTreeSet<(u64, Box<[u8]>)>,
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
        inner.end(now_ms, self.max_bytes.saturating_sub(most_bytes(write)));
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

    /// Records from `start` on, about `piece_bytes` of them, and where to go on.
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
                self.endings.remove(&(expires_ms, id.into()));
            }
        }
        if let Some(record) = record {
            self.used_bytes += bytes(id, &record);
            if let Some(expires_ms) = record.expires_ms {
                self.endings.insert((expires_ms, id.into()));
            }
            self.records.insert(id.into(), record);
        }
    }

    /// Lets go of what has ended: a few, since very many may have ended at once, and more while that takes
    /// more than so much room.
    fn end(&mut self, now_ms: u64, most_bytes: usize) {
        let mut ended = 0;
        while let Some((expires_ms, id)) = self.endings.first()
            && *expires_ms <= now_ms
            && (ended < ENDED_A_WRITE || self.used_bytes > most_bytes)
        {
            let id = id.clone();
            self.replace(&id, None);
            ended += 1;
        }
    }
}

/// Whether nothing can be between the two; a map's range must not be asked for that.
pub(crate) fn is_empty(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    let (Bound::Included(from) | Bound::Excluded(from)) = start else { return false };
    match end {
        Bound::Unbounded => false,
        Bound::Excluded(to) => from >= to,
        Bound::Included(to) => from > to || (from == to && matches!(start, Bound::Excluded(_))),
    }
}

/// What the record of a write may take.
fn most_bytes(write: &Write) -> usize {
    let value_bytes = match &write.change {
        Change::Put { value, .. } => value.len(),
        // A number.
        Change::Increment { .. } => 32,
        Change::Delete => 0,
    };
    RECORD_BYTES + 2 * write.id.len() + value_bytes
}

fn bytes(id: &[u8], record: &Record) -> usize {
    // The name is there twice when the record ends.
    let names = if record.expires_ms.is_some() { 2 } else { 1 };
    RECORD_BYTES + names * id.len() + record.value.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Condition;

    #[test]
    fn records_that_end_together_are_let_go_a_few_at_a_time_unless_room_is_needed() {
        let memory = Memory::new(1 << 20);
        for number in 0..1000 {
            let change = Change::Put { value: b"v"[..].into(), ttl_ms: Some(60_000) };
            let id = number.to_string().into_bytes().into();
            memory.write(&Write { id, change, condition: Condition::Always }).unwrap();
        }
        let later_ms = unix_ms() + 120_000;
        let mut inner = memory.inner.borrow_mut();
        inner.end(later_ms, usize::MAX);
        assert_eq!(inner.records.len(), 1000 - ENDED_A_WRITE);
        inner.end(later_ms, 0);
        assert_eq!((inner.records.len(), inner.endings.len(), inner.used_bytes), (0, 0, 0));
    }
}
