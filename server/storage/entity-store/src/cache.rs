//! The cache of recently read and written records.
//!
//! Used by a namespace on disk for every read. Absent records are cached as well, so that repeated
//! lookups need no disk. Eviction is by second chance: the oldest entry goes, unless it was used
//! since its last turn. Invariant: an entry is the latest committed state of its record.

use crate::record::Record;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Memory of an entry beside its key and value: two references to the shared key, the slot in the
/// table, the record and the overhead of the allocations.
const ENTRY_BYTES: usize = 160;

#[derive(Debug)]
struct Entry {
    /// `None`: the record does not exist.
    record: Option<Record>,
    was_used: Cell<bool>,
}

/// A cache within a budget.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: HashMap<Arc<[u8]>, Entry>,
    /// Each key that has an entry, once.
    order: VecDeque<Arc<[u8]>>,
    used_bytes: usize,
    max_bytes: usize,
}

impl Cache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), used_bytes: 0, max_bytes }
    }

    /// The cached state of a record: `None` if it is unknown, `Some(None)` if it does not exist.
    pub(crate) fn get(&self, id: &[u8]) -> Option<Option<&Record>> {
        let entry = self.entries.get(id)?;
        // The test saves dirtying the cache line on most reads.
        if !entry.was_used.get() {
            entry.was_used.set(true);
        }
        Some(entry.record.as_ref())
    }

    /// Caches the latest state of a record.
    pub(crate) fn put(&mut self, id: &[u8], record: Option<Record>) {
        let bytes = entry_bytes(id, record.as_ref());
        // One record must not evict all others.
        if bytes > self.max_bytes / 8 {
            if let Some(entry) = self.entries.remove(id) {
                self.used_bytes -= entry_bytes(id, entry.record.as_ref());
                self.order.retain(|name| **name != *id);
            }
            return;
        }
        self.used_bytes += bytes;
        match self.entries.get_mut(id) {
            Some(entry) => {
                self.used_bytes -= entry_bytes(id, entry.record.as_ref());
                entry.record = record;
                entry.was_used.set(true);
            }
            None => {
                let id: Arc<[u8]> = id.into();
                self.order.push_back(id.clone());
                self.entries.insert(id, Entry { record, was_used: Cell::new(false) });
            }
        }
        while self.used_bytes > self.max_bytes {
            self.evict_one();
        }
    }

    fn evict_one(&mut self) {
        let Some(id) = self.order.pop_front() else { return };
        if self.entries.get(&id).is_some_and(|entry| entry.was_used.take()) {
            self.order.push_back(id);
        } else if let Some(entry) = self.entries.remove(&id) {
            self.used_bytes -= entry_bytes(&id, entry.record.as_ref());
        }
    }

    /// The number of entries, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.entries.len(), self.used_bytes)
    }
}

fn entry_bytes(id: &[u8], record: Option<&Record>) -> usize {
    ENTRY_BYTES + id.len() + record.map_or(0, |record| record.value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: u64, bytes: usize) -> Option<Record> {
        Some(Record { version, expires_ms: None, value: vec![0; bytes].into() })
    }

    #[test]
    fn the_latest_state_is_cached_also_of_absent_records() {
        let mut cache = Cache::new(1 << 20);
        assert_eq!(cache.get(b"a"), None);
        cache.put(b"a", record(1, 10));
        cache.put(b"a", record(2, 20));
        assert_eq!(cache.get(b"a").unwrap().unwrap().version, 2);
        cache.put(b"a", None);
        assert_eq!(cache.get(b"a"), Some(None));
        assert_eq!(cache.size(), (1, ENTRY_BYTES + 1));
    }

    #[test]
    fn the_budget_holds_and_used_entries_stay() {
        let mut cache = Cache::new(100 * (ENTRY_BYTES + 4));
        for number in 0..1000_u32 {
            cache.put(&number.to_le_bytes(), None);
            cache.get(&0_u32.to_le_bytes());
            assert!(cache.size().1 <= 100 * (ENTRY_BYTES + 4));
        }
        assert_eq!(cache.size().0, 100);
        assert!(cache.get(&0_u32.to_le_bytes()).is_some());
        assert!(cache.get(&1_u32.to_le_bytes()).is_none());
    }

    #[test]
    fn a_record_too_large_to_cache_removes_its_old_state() {
        let mut cache = Cache::new(8000);
        cache.put(b"a", record(1, 10));
        cache.put(b"a", record(2, 2000));
        assert_eq!(cache.get(b"a"), None);
        assert_eq!(cache.size(), (0, 0));
    }

    #[test]
    fn a_record_of_changing_size_is_queued_once() {
        let mut cache = Cache::new(8000);
        for version in 0..10 {
            cache.put(b"a", record(version, 10));
            cache.put(b"a", record(version, 2000));
        }
        cache.put(b"a", record(10, 10));
        assert_eq!(cache.order.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn an_entry_is_the_latest_state_and_the_budget_is_counted(
            acts in proptest::collection::vec((0..12_u8, 0..5_u8, 0..300_usize), 0..200),
        ) {
            let mut cache = Cache::new(8 * (ENTRY_BYTES + 100));
            let mut latest = HashMap::new();
            for (version, (id, act, bytes)) in (0..).zip(acts) {
                match act {
                    0 => drop(cache.get(&[id])),
                    1 => {
                        cache.put(&[id], None);
                        latest.insert(id, None);
                    }
                    _ => {
                        cache.put(&[id], record(version, bytes));
                        latest.insert(id, record(version, bytes));
                    }
                }
                let sizes = cache.entries.iter().map(|(id, e)| entry_bytes(id, e.record.as_ref()));
                assert_eq!(cache.size(), (cache.order.len(), sizes.sum()));
                assert!(cache.used_bytes <= cache.max_bytes);
                for (id, expected) in &latest {
                    let known = cache.get(&[*id]);
                    assert!(known.is_none_or(|known| known == expected.as_ref()), "{id}");
                }
            }
        }
    }
}
