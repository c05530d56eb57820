//! [`Rings`]: the pools with rings that the event loop polls before it sleeps.
//!
//! One per event loop. A pool adds itself when one of its workers may send frames, and is removed once
//! the doorbells of all its workers are armed, so a turn of the loop costs nothing for the others.
//! Invariant: a pool that is not polled has only workers that ring for their next frame.

use crate::budget::Budget;
use outboard_reactor::MemorySource;
use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};

/// The rings of a pool.
pub(crate) trait PolledRings: fmt::Debug {
    /// Reads frames, within the budget. Returns whether the loop should poll again before it sleeps: a
    /// request has ended, or there may be more frames.
    fn poll_rings(&self, budget: &mut Budget) -> bool;
    /// Announces to the active workers that the gateway sleeps; those that are idle become inactive.
    /// Returns for how many milliseconds it may sleep: 0 if a frame has arrived meanwhile.
    fn prepare_sleep(&self) -> u64;
    /// Whether the pool need not be polled before it adds itself again.
    fn rest_rings(&self) -> bool;
    /// Announces to the active workers that the gateway is awake.
    fn cancel_sleep(&self);
}

/// See the module.
#[derive(Debug, Default)]
pub struct Rings {
    active: RefCell<Vec<Weak<dyn PolledRings>>>,
}

impl Rings {
    /// For [`outboard_reactor::watch_memory`].
    pub fn source(self: &Rc<Self>) -> impl MemorySource + use<> {
        Poller { rings: self.clone(), budget: Budget::default(), first: 0 }
    }

    /// Polls a pool from now on; it must not have been added before.
    pub(crate) fn add(&self, pool: Weak<dyn PolledRings>) {
        let mut active = self.active.borrow_mut();
        debug_assert!(!active.iter().any(|one| one.ptr_eq(&pool)), "the pool is polled twice");
        active.push(pool);
    }
}

/// Polls the rings.
struct Poller {
    rings: Rc<Rings>,
    /// For the current turn of the loop.
    budget: Budget,
    /// The pool to poll first; it rotates when the budget does not reach all.
    first: usize,
}

impl MemorySource for Poller {
    fn look(&mut self) -> bool {
        let mut is_active = false;
        // A pool that is added meanwhile is polled in the next round.
        let count = self.rings.active.borrow().len();
        for turn in 0..count {
            if self.budget.is_spent() {
                return true;
            }
            let pool = self.rings.active.borrow()[(self.first % count + turn) % count].upgrade();
            is_active |= pool.is_some_and(|pool| pool.poll_rings(&mut self.budget));
        }
        is_active || self.rings.active.borrow().len() > count
    }

    fn prepare_sleep(&mut self) -> u64 {
        let mut earliest_ms = u64::MAX;
        self.rings.active.borrow_mut().retain(|pool| {
            let Some(pool) = pool.upgrade() else { return false };
            earliest_ms = earliest_ms.min(pool.prepare_sleep());
            !pool.rest_rings()
        });
        earliest_ms
    }

    fn cancel_sleep(&mut self) {
        let active = self.rings.active.borrow();
        active.iter().filter_map(Weak::upgrade).for_each(|pool| pool.cancel_sleep());
        self.first = self.first.wrapping_add(usize::from(self.budget.is_spent()));
        self.budget = Budget::default();
    }
}
