//! [`Pressure`]: how late the event loop is, and whether the store admits more requests.
//!
//! Called for each request for records over HTTP. The store's queues measure waits for the disk; if
//! the processor is the bottleneck, requests wait in the loop's turn, after all that became ready
//! with them. Invariant: a request that is refused here has cost no more than reading its head.

use outboard_entity_store::Admission;
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};

/// See the module.
#[derive(Debug)]
pub struct Pressure {
    admission: RefCell<Admission>,
    /// The start of the current turn, and the longest wait of a request in it.
    turn_us: Cell<u64>,
    waited_us: Cell<u64>,
}

impl Pressure {
    /// Admission for requests that should wait at most so long.
    pub(super) fn new(wait_ms: u64) -> Self {
        let admission = RefCell::new(Admission::new(wait_ms, usize::MAX));
        Self { admission, turn_us: Cell::new(0), waited_us: Cell::new(0) }
    }

    /// Whether the current request is admitted.
    pub fn admits(&self) -> bool {
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000;
        self.admits_at(now_us, outboard_reactor::now_ms() * 1000)
    }

    /// At `now_us`, in the turn that started at `turn_us`.
    fn admits_at(&self, now_us: u64, turn_us: u64) -> bool {
        let mut admission = self.admission.borrow_mut();
        if self.turn_us.replace(turn_us) != turn_us {
            admission.observe(now_us, self.waited_us.replace(0));
        }
        let waited_us = now_us.saturating_sub(turn_us);
        self.waited_us.set(self.waited_us.get().max(waited_us));
        admission.admits(now_us, 1, Some(turn_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The admitted requests of a turn with a request each millisecond.
    fn turn(pressure: &Pressure, turn_us: u64, requests: u64) -> usize {
        let at = |number: u64| pressure.admits_at(turn_us + number * 1000, turn_us);
        (0..requests).filter(|number| at(*number)).count()
    }

    #[test]
    fn one_long_turn_passes_and_repeated_ones_are_limited() {
        let pressure = Pressure::new(5);
        assert_eq!(turn(&pressure, 0, 50), 50);
        let admitted: Vec<usize> =
            (1..10).map(|number| turn(&pressure, number * 50_000, 50)).collect();
        assert_eq!(admitted[..2], [50, 50]);
        assert_eq!(admitted[3..], [5; 6]);
    }

    #[test]
    fn short_turns_admit_all_requests_again() {
        let pressure = Pressure::new(5);
        (0..6).for_each(|number| assert!(turn(&pressure, number * 50_000, 50) > 0));
        assert_eq!(turn(&pressure, 300_000, 4), 4);
        assert_eq!(turn(&pressure, 350_000, 50), 50);
    }
}
