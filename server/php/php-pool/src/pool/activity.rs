//! [`ActiveSlots`]: the workers of a pool whose rings are polled.
//!
//! A worker is active from its start, a frame to it or its doorbell until it is idle and its doorbell is
//! armed. Invariants: an inactive worker is idle, and rings for its next frame if it may send any; a pool
//! with active workers or pending operations is in [`Rings`].

use crate::rings::{PolledRings, Rings};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// See the module.
#[derive(Debug)]
pub(super) struct ActiveSlots {
    slots: RefCell<Vec<usize>>,
    rings: Rc<Rings>,
    pool: Weak<dyn PolledRings>,
    /// Whether the pool is in `rings`.
    is_listed: Cell<bool>,
}

impl ActiveSlots {
    pub(super) fn new(rings: Rc<Rings>, pool: Weak<dyn PolledRings>) -> Rc<Self> {
        Rc::new(Self { slots: RefCell::default(), rings, pool, is_listed: Cell::new(false) })
    }

    /// Adds a slot that is not in the list.
    pub(super) fn add(&self, slot: usize) {
        let mut slots = self.slots.borrow_mut();
        debug_assert!(!slots.contains(&slot), "the worker of slot {slot} is polled twice");
        slots.push(slot);
        drop(slots);
        self.list_pool();
    }

    /// Has the pool polled.
    pub(super) fn list_pool(&self) {
        if !self.is_listed.replace(true) {
            self.rings.add(self.pool.clone());
        }
    }

    pub(super) fn remove(&self, slot: usize) {
        self.slots.borrow_mut().retain(|active| *active != slot);
    }

    /// Removes those slots for which `stays` is false.
    pub(super) fn retain(&self, mut stays: impl FnMut(usize) -> bool) {
        self.slots.borrow_mut().retain(|slot| stays(*slot));
    }

    pub(super) fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    /// The slot at this place of the list, while it has one.
    pub(super) fn get(&self, at: usize) -> Option<usize> {
        self.slots.borrow().get(at).copied()
    }

    #[cfg(test)]
    pub(super) fn rings(&self) -> &Rc<Rings> {
        &self.rings
    }

    /// Marks the pool as removed from [`Rings`].
    pub(super) fn unlist_pool(&self) {
        debug_assert!(self.slots.borrow().is_empty(), "active workers are not polled");
        self.is_listed.set(false);
    }
}
