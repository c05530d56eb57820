//! [`Turns`]: how many turns of the event loop took how long.
//!
//! Counted by [`crate::reactor`] at the end of each turn. A turn is what the loop does between two
//! sleeps, so its length is the longest time that a ready socket waits for the loop. The time is that
//! of the clock: on a busy machine it includes what the kernel gives to other processes.

use std::time::Duration;

/// How many turns of an event loop took how long since its start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// All turns.
    pub count: u64,
    /// The longest turn.
    pub longest: Duration,
    /// The turns that were longer than the respective one of [`Turns::BOUNDS_MS`].
    pub slow: [u64; Turns::BOUNDS_MS.len()],
}

impl Turns {
    /// The lengths beyond which turns are counted, in ascending order.
    pub const BOUNDS_MS: [u64; 4] = [1, 5, 20, 100];

    pub(crate) fn add(&mut self, turn: Duration) {
        self.count += 1;
        self.longest = self.longest.max(turn);
        for (slow, bound_ms) in self.slow.iter_mut().zip(Self::BOUNDS_MS) {
            if turn <= Duration::from_millis(bound_ms) {
                break;
            }
            *slow += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_turn_counts_for_each_bound_that_it_exceeds() {
        let mut turns = Turns::default();
        for micros in [900, 1_000, 4_000, 30_000] {
            turns.add(Duration::from_micros(micros));
        }
        let longest = Duration::from_millis(30);
        assert_eq!(turns, Turns { count: 4, longest, slow: [2, 1, 1, 0] });
    }
}
