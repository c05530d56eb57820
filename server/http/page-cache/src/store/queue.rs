//! The slots of the entries, and the queues that link them.
//!
//! A queue is a list linked through the slots, so that a purge unlinks an entry in constant time.
//! Called only by [`super::Store`]. Invariant: an occupied slot is in exactly one queue.

use super::Stored;
use std::sync::Arc;

/// An entry and its places in index and queue.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) entry: Arc<Stored>,
    pub(super) hash: u64,
    /// The next entry with the same hash.
    pub(super) chained: Option<u32>,
    newer: Option<u32>,
    older: Option<u32>,
    pub(super) is_main: bool,
}

impl Slot {
    pub(super) fn new(entry: Arc<Stored>, hash: u64, chained: Option<u32>) -> Self {
        Self { entry, hash, chained, newer: None, older: None, is_main: false }
    }
}

/// Slots by number; numbers are reused.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
}

const OCCUPIED: &str = "the index and the queues name only occupied slots";

impl Slots {
    pub(super) fn get(&self, number: u32) -> &Slot {
        self.slots[number as usize].as_ref().expect(OCCUPIED)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Slot {
        self.slots[number as usize].as_mut().expect(OCCUPIED)
    }

    pub(super) fn add(&mut self, slot: Slot) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(slot);
            return number;
        }
        self.slots.push(Some(slot));
        u32::try_from(self.slots.len() - 1).expect("a slot takes more than 32 bytes of the budget")
    }

    pub(super) fn take(&mut self, number: u32) -> Slot {
        self.free.push(number);
        self.slots[number as usize].take().expect(OCCUPIED)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0..).zip(&self.slots).filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Slot>>() + self.free.capacity() * 4
    }
}

/// A list of slots from the newest to the oldest.
#[derive(Debug, Default)]
pub(super) struct Queue {
    newest: Option<u32>,
    oldest: Option<u32>,
    /// The memory of its entries.
    pub(super) bytes: usize,
}

impl Queue {
    pub(super) fn oldest(&self) -> Option<u32> {
        self.oldest
    }

    pub(super) fn push(&mut self, slots: &mut Slots, number: u32, cost_bytes: usize) {
        let slot = slots.get_mut(number);
        (slot.newer, slot.older) = (None, self.newest);
        match self.newest.replace(number) {
            Some(second) => slots.get_mut(second).newer = Some(number),
            None => self.oldest = Some(number),
        }
        self.bytes += cost_bytes;
    }

    pub(super) fn unlink(&mut self, slots: &mut Slots, number: u32, cost_bytes: usize) {
        let slot = slots.get_mut(number);
        let (newer, older) = (slot.newer.take(), slot.older.take());
        match newer {
            Some(newer) => slots.get_mut(newer).older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => slots.get_mut(older).newer = newer,
            None => self.oldest = newer,
        }
        self.bytes -= cost_bytes;
    }

    pub(super) fn resize(&mut self, old_bytes: usize, new_bytes: usize) {
        self.bytes = self.bytes - old_bytes + new_bytes;
    }
}
