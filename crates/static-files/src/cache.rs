//! The open-file cache: what each path was found to be, for how long that is trusted, and a bound
//! on how many are remembered. Single-threaded; owned by [`crate::Root`].
//!
//! When it is full, the place of a path that was not asked for lately is given away (second
//! chance, also known as CLOCK), so a flood of paths that do not exist cannot push out files that
//! are in use.

use std::collections::HashMap;
use std::rc::Rc;

/// What the cache says about a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Memory<T> {
    /// Known and still trusted.
    Fresh(T),
    /// Known, but to be asked again.
    Stale(T),
    /// Not known.
    Unknown,
}

#[derive(Debug)]
struct Slot<T> {
    path: Rc<[u8]>,
    value: T,
    valid_until_ms: u64,
    /// Asked for since the hand last passed.
    used: bool,
}

/// At most `capacity` paths and what was found there. The map keeps std's keyed hash: clients
/// choose the keys.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    index: HashMap<Rc<[u8]>, usize>,
    slots: Vec<Slot<T>>,
    capacity: usize,
    hand: usize,
}

impl<T: Clone> Cache<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { index: HashMap::new(), slots: Vec::new(), capacity, hand: 0 }
    }

    pub(crate) fn get(&mut self, path: &[u8], now_ms: u64) -> Memory<T> {
        let Some(&index) = self.index.get(path) else { return Memory::Unknown };
        let slot = &mut self.slots[index];
        slot.used = true;
        if now_ms < slot.valid_until_ms {
            Memory::Fresh(slot.value.clone())
        } else {
            Memory::Stale(slot.value.clone())
        }
    }

    /// Remembers a value, or trusts the present one for longer.
    pub(crate) fn put(&mut self, path: &[u8], value: T, valid_until_ms: u64) {
        if let Some(&index) = self.index.get(path) {
            let slot = &mut self.slots[index];
            (slot.value, slot.valid_until_ms) = (value, valid_until_ms);
        } else if self.capacity > 0 {
            let path: Rc<[u8]> = path.into();
            let slot = Slot { path: Rc::clone(&path), value, valid_until_ms, used: false };
            let index = self.place(slot);
            self.index.insert(path, index);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.slots.clear();
        self.hand = 0;
    }

    fn place(&mut self, slot: Slot<T>) -> usize {
        if self.slots.len() < self.capacity {
            self.slots.push(slot);
            return self.slots.len() - 1;
        }
        // Ends within two rounds: the first clears every mark.
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
        cache.put(b"/a", 1, 100);
        assert_eq!(cache.get(b"/a", 99), Memory::Fresh(1));
        assert_eq!(cache.get(b"/a", 100), Memory::Stale(1));
        cache.put(b"/a", 2, 200);
        assert_eq!(cache.get(b"/a", 100), Memory::Fresh(2));
        assert_eq!(cache.get(b"/b", 0), Memory::Unknown);
    }

    #[test]
    fn a_flood_of_new_paths_stays_in_bounds_and_spares_what_is_used() {
        let mut cache = Cache::new(8);
        cache.put(b"/hot", 0, u64::MAX);
        for flood in 1..1000 {
            assert_eq!(cache.get(b"/hot", 0), Memory::Fresh(0));
            cache.put(format!("/{flood}").as_bytes(), flood, u64::MAX);
            assert!(cache.slots.len() <= 8);
            assert_eq!(cache.index.len(), cache.slots.len());
        }
        assert_eq!(cache.get(b"/999", 0), Memory::Fresh(999));
        assert_eq!(cache.get(b"/1", 0), Memory::Unknown);
    }

    #[test]
    fn without_capacity_nothing_is_remembered() {
        let mut cache = Cache::new(0);
        cache.put(b"/a", 1, u64::MAX);
        assert_eq!(cache.get(b"/a", 0), Memory::Unknown);
    }

    #[test]
    fn clearing_forgets_everything() {
        let mut cache = Cache::new(2);
        for path in [b"/a", b"/b", b"/c"] {
            cache.put(path, 1, u64::MAX);
        }
        cache.clear();
        assert_eq!(cache.get(b"/c", 0), Memory::Unknown);
        cache.put(b"/c", 2, u64::MAX);
        assert_eq!(cache.get(b"/c", 0), Memory::Fresh(2));
    }
}
