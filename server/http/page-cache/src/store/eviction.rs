//! Which entries leave the store when it exceeds its budget.
//!
//! Called by [`Store`] after each change that needs memory.

use super::Store;
use crate::freshness::Freshness;

impl Store {
    pub(super) fn make_room(&mut self, now_s: u64) {
        while self.used_bytes() > self.budget_bytes && self.slots.len() > 0 {
            let from_small =
                self.small.bytes > self.budget_bytes / 10 || self.main.oldest().is_none();
            let oldest = if from_small { self.small.oldest() } else { self.main.oldest() };
            let Some(number) = oldest else { return };
            self.pass_or_evict(number, now_s);
        }
    }

    /// Gives the oldest entry of a queue another round in the main queue if it was requested, and
    /// evicts it otherwise.
    fn pass_or_evict(&mut self, number: u32, now_s: u64) {
        let slot = self.slots.get_mut(number);
        let is_of_use = is_of_use(&slot.entry.times, now_s);
        let is_main = slot.is_main;
        if !is_of_use || !slot.entry.has_earned_a_round(is_main) {
            if !is_main {
                self.ghost.add(slot.hash);
            }
            self.counts.evicted += 1;
            return self.remove(number);
        }
        let cost_bytes = slot.entry.cost_bytes();
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.unlink(&mut self.slots, number, cost_bytes);
        self.slots.get_mut(number).is_main = true;
        self.main.push(&mut self.slots, number, cost_bytes);
    }
}

/// Whether an entry can still be used without its origin.
fn is_of_use(times: &Freshness, now_s: u64) -> bool {
    now_s == u64::MAX || times.useful_until_s() >= now_s
}
