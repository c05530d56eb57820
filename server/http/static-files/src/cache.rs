//! The open-file cache: a bounded number of lookup results by path, each with an expiry.
//! Single-threaded; owned by [`crate::Root`].
//!
//! A full cache evicts a path that was not requested recently (second chance, also known as CLOCK), so
//! a flood of paths that do not exist cannot evict files in use.

use std::collections::HashMap;
use std::rc::Rc;

/// A cached result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cached<T> {
    /// Cached and not expired.
    Fresh(T),
    /// Cached, but expired.
    Stale(T),
    /// Not cached.
    Unknown,
}

/// Paths that are compared before they are hashed, by a few of their bits.
const RECENT: usize = 16;

#[derive(Debug)]
struct Slot<T> {
    path: Rc<[u8]>,
    value: T,
    valid_until_ms: u64,
    /// Requested since the hand last passed.
    used: bool,
}

/// The results of at most `capacity` paths. The map has std's keyed hash because clients choose the
/// keys.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    index: HashMap<Rc<[u8]>, usize>,
    slots: Vec<Slot<T>>,
    capacity: usize,
    hand: usize,
    /// The slot that was found last for these bits of a path. It may have another path by now.
    recent: [usize; RECENT],
}

impl<T: Clone> Cache<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { index: HashMap::new(), slots: Vec::new(), capacity, hand: 0, recent: [0; RECENT] }
    }

    pub(crate) fn get(&mut self, path: &[u8], now_ms: u64) -> Cached<T> {
        let Some(index) = self.find(path) else { return Cached::Unknown };
        let slot = &mut self.slots[index];
        slot.used = true;
        if now_ms < slot.valid_until_ms {
            Cached::Fresh(slot.value.clone())
        } else {
            Cached::Stale(slot.value.clone())
        }
    }

    fn find(&mut self, path: &[u8]) -> Option<usize> {
        let last = path.last().copied().unwrap_or_default();
        let recent = &mut self.recent[(path.len() + 5 * usize::from(last)) % RECENT];
        if self.slots.get(*recent).is_none_or(|slot| *slot.path != *path) {
            *recent = *self.index.get(path)?;
        }
        Some(*recent)
    }

    /// Inserts or replaces a value.
    pub(crate) fn insert(&mut self, path: &[u8], value: T, valid_until_ms: u64) {
        if let Some(&index) = self.index.get(path) {
            let slot = &mut self.slots[index];
            (slot.value, slot.valid_until_ms) = (value, valid_until_ms);
        } else if self.capacity > 0 {
            let path: Rc<[u8]> = path.into();
            let slot = Slot { path: Rc::clone(&path), value, valid_until_ms, used: false };
            let index = self.add(slot);
            self.index.insert(path, index);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.slots.clear();
        self.hand = 0;
    }

    fn add(&mut self, slot: Slot<T>) -> usize {
        if self.slots.len() < self.capacity {
            self.slots.push(slot);
            return self.slots.len() - 1;
        }
        // The loop ends within two rounds because the first clears every mark.
        while std::mem::take(&mut self.slots[self.hand].used) {
            self.hand = (self.hand + 1) % self.capacity;
        }
        let index = self.hand;
        self.index.remove(&self.slots[index].path);
        self.slots[index] = slot;
        self.hand = (self.hand + 1) % self.capacity;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_fresh_until_its_time_and_stale_from_then_on() {
        let mut cache = Cache::new(4);
        cache.insert(b"/a", 1, 100);
        assert_eq!(cache.get(b"/a", 99), Cached::Fresh(1));
        assert_eq!(cache.get(b"/a", 100), Cached::Stale(1));
        cache.insert(b"/a", 2, 200);
        assert_eq!(cache.get(b"/a", 100), Cached::Fresh(2));
        assert_eq!(cache.get(b"/b", 0), Cached::Unknown);
    }

    #[test]
    fn a_flood_of_new_paths_does_not_evict_a_used_one() {
        let mut cache = Cache::new(8);
        cache.insert(b"/hot", 0, u64::MAX);
        for flood in 1..1000 {
            assert_eq!(cache.get(b"/hot", 0), Cached::Fresh(0));
            cache.insert(format!("/{flood}").as_bytes(), flood, u64::MAX);
            assert!(cache.slots.len() <= 8);
            assert_eq!(cache.index.len(), cache.slots.len());
        }
        assert_eq!(cache.get(b"/999", 0), Cached::Fresh(999));
        assert_eq!(cache.get(b"/1", 0), Cached::Unknown);
    }

    #[test]
    fn a_slot_that_was_found_last_is_not_taken_for_another_path() {
        let mut cache = Cache::new(1);
        cache.insert(b"/ab", 1, u64::MAX);
        assert_eq!(cache.get(b"/ab", 0), Cached::Fresh(1));
        assert_eq!(cache.get(b"/bb", 0), Cached::Unknown);
        cache.insert(b"/bb", 2, u64::MAX);
        assert_eq!(cache.get(b"/ab", 0), Cached::Unknown);
        assert_eq!(cache.get(b"/bb", 0), Cached::Fresh(2));
        cache.clear();
        assert_eq!(cache.get(b"/bb", 0), Cached::Unknown);
    }

    #[test]
    fn without_capacity_nothing_is_cached() {
        let mut cache = Cache::new(0);
        cache.insert(b"/a", 1, u64::MAX);
        assert_eq!(cache.get(b"/a", 0), Cached::Unknown);
    }

    #[test]
    fn clearing_removes_everything() {
        let mut cache = Cache::new(2);
        for path in [b"/a", b"/b", b"/c"] {
            cache.insert(path, 1, u64::MAX);
        }
        cache.clear();
        assert_eq!(cache.get(b"/c", 0), Cached::Unknown);
        cache.insert(b"/c", 2, u64::MAX);
        assert_eq!(cache.get(b"/c", 0), Cached::Fresh(2));
    }
}
