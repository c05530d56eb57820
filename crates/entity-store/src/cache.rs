//! Records that were read or written lately, in memory.
//!
//! Called by a namespace on disk for every read. What is not there is remembered as well, so that
//! asking for it again costs no look at the disk. When the budget is used up, whatever was not
//! asked for since it was last looked at goes, oldest first (a second chance for the rest).
//! Invariant: an entry is the latest committed state of its record.

use crate::record::Record;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What an entry takes beside its name and its value: two copies of the shared name, the table's
/// slot, the record and the allocations' own.
const ENTRY_BYTES: usize = 160;

#[derive(Debug)]
struct Entry {
    /// `None`: there is none.
    record: Option<Record>,
    was_asked_for: Cell<bool>,
}

/// A cache within a budget.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: HashMap<Arc<[u8]>, Entry>,
    /// Every name that has an entry, once.
    order: VecDeque<Arc<[u8]>>,
    used_bytes: usize,
    max_bytes: usize,
}

impl Cache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), used_bytes: 0, max_bytes }
    }

    /// What is known of a record: `None` for nothing, `Some(None)` that there is none.
    pub(crate) fn get(&self, id: &[u8]) -> Option<Option<&Record>> {
        let entry = self.entries.get(id)?;
        // Looked at first: what is written has to be written back.
        if !entry.was_asked_for.get() {
            entry.was_asked_for.set(true);
        }
        Some(entry.record.as_ref())
    }

    /// Remembers the latest state of a record.
    pub(crate) fn put(&mut self, id: &[u8], record: Option<Record>) {
        let bytes = entry_bytes(id, record.as_ref());
        // One record must not push out everything else.
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
                entry.was_asked_for.set(true);
            }
            None => {
                let id: Arc<[u8]> = id.into();
                self.order.push_back(id.clone());
                self.entries.insert(id, Entry { record, was_asked_for: Cell::new(false) });
            }
        }
        while self.used_bytes > self.max_bytes {
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        let Some(id) = self.order.pop_front() else { return };
        if self.entries.get(&id).is_some_and(|entry| entry.was_asked_for.take()) {
            self.order.push_back(id);
        } else if let Some(entry) = self.entries.remove(&id) {
            self.used_bytes -= entry_bytes(&id, entry.record.as_ref());
        }
    }

    /// Entries and bytes.
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
    fn the_latest_state_is_known_that_there_is_none_included() {
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
    fn the_budget_holds_and_what_is_asked_for_stays() {
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
    fn a_record_too_large_to_keep_leaves_no_older_state_behind() {
        let mut cache = Cache::new(8000);
        cache.put(b"a", record(1, 10));
        cache.put(b"a", record(2, 2000));
        assert_eq!(cache.get(b"a"), None);
        assert_eq!(cache.size(), (0, 0));
    }

    #[test]
    fn a_record_that_is_large_now_and_then_has_its_name_here_once() {
        let mut cache = Cache::new(8000);
        for version in 0..10 {
            cache.put(b"a", record(version, 10));
            cache.put(b"a", record(version, 2000));
        }
        cache.put(b"a", record(10, 10));
        assert_eq!(cache.order.len(), 1);
    }
}
