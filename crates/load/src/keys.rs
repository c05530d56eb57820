//! [`Keys`]: the names that one thread of a run draws for its requests, and those that it adds.
//!
//! Filled into templates. Invariant: a key that the thread has added is drawn as one of the latest
//! only when its request must have been answered, and no two threads add the same.

use crate::plan::Plan;
use crate::random::Random;
use crate::worker::Share;
use crate::zipf::Draw;

/// Numbers from 0 on; see the module.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    draw: Draw,
    /// How many there are before the run.
    count: u64,
    /// Of this thread: the first that it adds, and how far it is from one to the next.
    first: u64,
    stride: u64,
    added: u64,
    /// So many of those added may be on their way.
    unanswered_max: u64,
}

impl Keys {
    pub(crate) fn new(plan: &Plan, share: Share) -> Self {
        Self {
            draw: Draw::new(plan.keys, plan.zipf),
            count: plan.keys,
            first: plan.keys + share.thread as u64,
            stride: share.threads as u64,
            added: 0,
            unanswered_max: (plan.connections * plan.streams).div_ceil(share.threads) as u64,
        }
    }

    /// Keys of one thread alone, each as likely as the others.
    pub(crate) fn of(count: u64) -> Self {
        let draw = Draw::new(count, None);
        Self { draw, count, first: count, stride: 1, added: 0, unanswered_max: 0 }
    }

    /// One of those that were there before the run.
    pub(crate) fn known(&self, random: &mut Random) -> u64 {
        self.draw.next(random)
    }

    /// One that was none before.
    pub(crate) fn add(&mut self) -> u64 {
        self.added += 1;
        self.first + (self.added - 1) * self.stride
    }

    /// One of those that are there by now; where there is a law, the youngest most often.
    pub(crate) fn latest(&self, random: &mut Random) -> u64 {
        self.of_age(self.draw.rank(random))
    }

    /// The key that so many are younger than.
    fn of_age(&self, age: u64) -> u64 {
        let answered = self.added.saturating_sub(self.unanswered_max);
        match answered.checked_sub(age + 1) {
            Some(place) => self.first + place * self.stride,
            None => (self.count + answered).saturating_sub(age + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_those_added_last_and_then_those_before() {
        let mut keys = Keys { first: 11, stride: 2, unanswered_max: 1, ..Keys::of(10) };
        assert_eq!([0, 9].map(|age| keys.of_age(age)), [9, 0]);
        assert_eq!([keys.add(), keys.add(), keys.add()], [11, 13, 15]);
        assert_eq!([0, 1, 2, 11].map(|age| keys.of_age(age)), [13, 11, 9, 0]);
    }
}
