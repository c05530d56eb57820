//! The dynamic table of HPACK and QPACK (RFC 7541 2.3.2 and 4, RFC 9204 3.2).
//!
//! Called by the decoders and by HPACK's encoder. The entries' bytes are in one buffer, oldest first;
//! the space of evicted ones is reclaimed when the buffer is full.
//!
//! Invariants: the entries are not larger than the capacity; the buffer is at most twice as large; no
//! allocation once it has grown.

use crate::field_section::{FIELD_OVERHEAD_BYTES, field_bytes};
use std::collections::VecDeque;

/// The first allocation of the buffer.
const INITIAL_BYTES: usize = 512;

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// In bytes ever written to the buffer.
    start: u64,
    name_len: u32,
    value_len: u32,
}

impl Entry {
    fn size(self) -> usize {
        self.name_len as usize + self.value_len as usize + FIELD_OVERHEAD_BYTES
    }
}

/// The table; indices are relative, 0 is the newest entry.
#[derive(Debug)]
pub(crate) struct DynamicTable {
    entries: VecDeque<Entry>,
    bytes: Vec<u8>,
    /// How many bytes were removed from the start of `bytes`.
    removed: u64,
    size: usize,
    capacity: usize,
    inserted: u64,
}

impl DynamicTable {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: Vec::new(),
            removed: 0,
            size: 0,
            capacity,
            inserted: 0,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many entries were ever inserted.
    pub(crate) fn inserted(&self) -> u64 {
        self.inserted
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The name and value of an entry.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let position = self.entries.len().checked_sub(index.checked_add(1)?)?;
        let entry = self.entries.get(position)?;
        let start = (entry.start - self.removed) as usize;
        let field = &self.bytes[start..][..(entry.name_len + entry.value_len) as usize];
        Some(field.split_at(entry.name_len as usize))
    }

    /// The same by absolute index (RFC 9204 3.2.4).
    pub(crate) fn get_absolute(&self, index: u64) -> Option<(&[u8], &[u8])> {
        let relative = self.inserted.checked_sub(index.checked_add(1)?)?;
        self.get(usize::try_from(relative).ok()?)
    }

    /// Changes the capacity and evicts what does not fit.
    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.evict_to(capacity);
        if capacity == 0 {
            self.bytes = Vec::new();
            self.entries = VecDeque::new();
        }
    }

    /// Inserts an entry; one that is larger than the table empties it (RFC 7541 4.4).
    ///
    /// Returns whether the entry is in the table.
    #[inline]
    pub(crate) fn insert<const LOWERCASE: bool>(&mut self, name: &[u8], value: &[u8]) -> bool {
        let size = field_bytes(name, value);
        let (Ok(name_len), Ok(value_len), true) =
            (name.len().try_into(), value.len().try_into(), size <= self.capacity)
        else {
            self.evict_to(0);
            return false;
        };
        self.evict_to(self.capacity - size);
        self.make_room(name.len() + value.len());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        if LOWERCASE {
            self.bytes[start..].make_ascii_lowercase();
        }
        self.bytes.extend_from_slice(value);
        self.entries.push_back(Entry { start: self.removed + start as u64, name_len, value_len });
        self.size += size;
        self.inserted += 1;
        true
    }

    fn evict_to(&mut self, size_max: usize) {
        while self.size > size_max {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.size -= oldest.size();
        }
    }

    /// Makes the next `len` bytes fit into the buffer.
    #[inline]
    fn make_room(&mut self, len: usize) {
        if self.bytes.len() + len > self.bytes.capacity() {
            self.grow_or_compact(len);
        }
    }

    #[cold]
    fn grow_or_compact(&mut self, len: usize) {
        let bytes_max = self.capacity * 2;
        if self.bytes.len() + len <= bytes_max {
            let doubled = (self.bytes.capacity() * 2).max(INITIAL_BYTES).min(bytes_max);
            let wanted = doubled.max(self.bytes.len() + len);
            self.bytes.reserve_exact(wanted - self.bytes.len());
            return;
        }
        // At least half of the buffer was evicted, so each byte is moved once on average.
        let live = self
            .entries
            .front()
            .map_or(self.bytes.len(), |oldest| (oldest.start - self.removed) as usize);
        self.bytes.drain(..live);
        self.removed += live as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(table: &DynamicTable) -> Vec<(Vec<u8>, Vec<u8>)> {
        let owned = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
        (0..table.len()).map(|index| owned(table.get(index).unwrap())).collect()
    }

    #[test]
    fn the_oldest_entries_are_evicted() {
        let mut table = DynamicTable::new(102);
        assert!(table.insert::<false>(b"A", b"1"));
        assert!(table.insert::<true>(b"B", b"2"));
        assert!(table.insert::<false>(b"c", b"3"));
        assert_eq!(table.get(0), Some((&b"c"[..], &b"3"[..])));
        assert_eq!(table.get(2), Some((&b"A"[..], &b"1"[..])));
        assert_eq!(table.size(), 102);
        assert!(table.insert::<false>(b"d", b""));
        assert_eq!(table.get(2), Some((&b"b"[..], &b"2"[..])));
        assert_eq!(table.get_absolute(1), Some((&b"b"[..], &b"2"[..])));
        assert_eq!((table.get_absolute(0), table.get_absolute(4)), (None, None));
        assert_eq!((table.get(3), table.get(usize::MAX)), (None, None));
        table.set_capacity(34);
        assert_eq!(table.len(), 1);
        assert!(!table.insert::<false>(b"e", b"12"));
        assert_eq!((table.len(), table.size()), (0, 0));
    }

    proptest! {
        #[test]
        fn the_table_is_the_newest_fields_that_fit(
            capacities in proptest::collection::vec(0..400usize, 1..4),
            fields in proptest::collection::vec(("[a-z]{0,40}", "[0-9]{0,200}"), 0..60),
        ) {
            let mut table = DynamicTable::new(capacities[0]);
            let mut model: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            for (at, (name, value)) in fields.iter().enumerate() {
                let capacity = capacities[at / 20 % capacities.len()];
                table.set_capacity(capacity);
                let is_inserted = table.insert::<false>(name.as_bytes(), value.as_bytes());
                model.insert(0, (name.clone().into_bytes(), value.clone().into_bytes()));
                let mut size = 0;
                let fits = |(name, value): &&(Vec<u8>, Vec<u8>)| {
                    size += field_bytes(name, value);
                    size <= capacity
                };
                model = model.iter().take_while(fits).cloned().collect();
                prop_assert_eq!(is_inserted, !model.is_empty());
                prop_assert_eq!(entries(&table), model.clone());
                prop_assert!(table.bytes.len() <= 2 * 400);
            }
        }
    }
}
