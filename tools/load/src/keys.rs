//! [`Keys`]: the keys that one thread of a run draws and adds.
//!
//! Used by templates. Invariants: an added key is drawn as one of the latest only once its request
//! must have been answered, and no two threads add the same key.

use crate::key_distribution::KeyDistribution;
use crate::random::Random;
use crate::share::Share;

/// Keys numbered from 0.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    distribution: KeyDistribution,
    /// The number of keys before the run.
    count: u64,
    /// The first key that this thread adds, and the distance to the next.
    first: u64,
    stride: u64,
    added: u64,
    /// At most this many added keys may still be in flight.
    unanswered_max: u64,
}

impl Keys {
    /// The keys of one thread, of `count` from before the run; all threads together have at most
    /// `in_flight` requests without a response.
    pub(crate) fn new(
        distribution: KeyDistribution,
        count: u64,
        share: Share,
        in_flight: usize,
    ) -> Self {
        Self {
            distribution,
            count,
            first: count + share.thread as u64,
            stride: share.threads as u64,
            added: 0,
            unanswered_max: in_flight.div_ceil(share.threads) as u64,
        }
    }

    /// Keys of one thread alone, all equally likely.
    pub(crate) fn of(count: u64) -> Self {
        let distribution = KeyDistribution::new(count, None);
        Self { distribution, count, first: count, stride: 1, added: 0, unanswered_max: 0 }
    }

    /// One of the keys from before the run.
    pub(crate) fn known(&self, random: &mut Random) -> u64 {
        self.distribution.next(random)
    }

    /// A new key.
    pub(crate) fn add(&mut self) -> u64 {
        self.added += 1;
        self.first + (self.added - 1) * self.stride
    }

    /// One of the keys that exist by now; with a distribution, the youngest is the most likely.
    pub(crate) fn latest(&self, random: &mut Random) -> u64 {
        self.of_age(self.distribution.rank(random))
    }

    /// The key with this many younger ones.
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
    fn the_latest_keys_are_the_last_added() {
        let mut keys = Keys { first: 11, stride: 2, unanswered_max: 1, ..Keys::of(10) };
        assert_eq!([0, 9].map(|age| keys.of_age(age)), [9, 0]);
        assert_eq!([keys.add(), keys.add(), keys.add()], [11, 13, 15]);
        assert_eq!([0, 1, 2, 11].map(|age| keys.of_age(age)), [13, 11, 9, 0]);
    }
}
