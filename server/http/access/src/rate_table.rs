//! [`RateTable`]: the buckets of the clients of one rate limit.
//!
//! Shared by all threads of the gateway, without locks. Each key hashes to a set of [`WAYS`] buckets, which
//! is one cache line, and may be in any of these. A bucket is one word: a part of the hash, and the time
//! at which it is full again in [`Ticks`]. Invariants:
//!
//! * The memory is allocated once; a key costs 8 bytes, and an address nothing beyond.
//! * A request reads and writes one cache line, so that threads pass one another one line per limit.
//! * A key that is not in a full set takes the place of the bucket that is full the soonest, **and its
//!   tokens**. So buckets that are full again are replaced first; and as the least debt of a set only
//!   grows, a client whose bucket was replaced never finds more tokens than it would have had. A client
//!   gains nothing by filling the table with other addresses; new clients of that set share a bucket then.
//! * Threads that race for a bucket admit no request more.

mod ticks;

use crate::rate::{Rate, Spending};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use ticks::{TIME_BITS, Ticks};

/// Buckets that a key can be in: a cache line.
const WAYS: usize = 8;
/// The room for each client: with three times as many buckets one set of 400 is full too early.
const ROOM: usize = 3;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// See the module.
#[derive(Debug)]
pub struct RateTable {
    rate: Rate,
    ticks: Ticks,
    sets: Box<[Set]>,
}

/// The hash of a key, for all tables of the process: a request with several limits computes it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(u64);

/// Keyed, so that clients cannot choose addresses that collide.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl KeyHash {
    /// That of a key.
    pub fn of(key: impl Hash) -> Self {
        Self(HASHER.hash_one(key))
    }
}

/// Buckets of one hash; 0: free.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set([AtomicU64; WAYS]);

/// The place of a key.
struct Place<'a> {
    set: &'a Set,
    /// The part of its hash that tells it from other keys of the set, in the upper bits; not 0.
    fingerprint: u64,
}

impl RateTable {
    /// For so many clients at the same time. There is more room, so that hardly any set is full before.
    pub fn new(rate: Rate, clients: usize) -> Self {
        let sets = (clients.max(1) * ROOM).div_ceil(WAYS);
        let sets = std::iter::repeat_with(Set::default).take(sets).collect();
        Self { ticks: Ticks::of(&rate), rate, sets }
    }

    /// The rate.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// The memory that it uses.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// Takes a token of the bucket of `key`. `now_ns` is of a clock that all callers share, and starts
    /// after 0.
    pub fn spend(&self, key: KeyHash, now_ns: u64) -> Spending {
        self.spend_many(key, 1, now_ns)
    }

    /// Takes `cost` tokens, or none if there are fewer.
    pub fn spend_many(&self, key: KeyHash, cost: u32, now_ns: u64) -> Spending {
        self.change(key, cost, now_ns, true)
    }

    /// What [`Self::spend_many`] would result in.
    pub fn look(&self, key: KeyHash, cost: u32, now_ns: u64) -> Spending {
        let (place, now) = (self.place(key), self.ticks.at(now_ns));
        let (_, bucket) = place.find(&self.ticks, now);
        self.ticks.spend(self.ticks.debt(bucket, now), cost).1
    }

    /// Takes `cost` tokens, whether they are there or not.
    pub fn charge(&self, key: KeyHash, cost: u32, now_ns: u64) {
        self.change(key, cost, now_ns, false);
    }

    fn change(&self, key: KeyHash, cost: u32, now_ns: u64, is_bound: bool) -> Spending {
        let (place, now) = (self.place(key), self.ticks.at(now_ns));
        loop {
            let (way, bucket) = place.find(&self.ticks, now);
            let (after, spending) = self.ticks.spend(self.ticks.debt(bucket, now), cost);
            if is_bound && !spending.is_admitted {
                return spending;
            }
            let full_at = now.wrapping_add(after) & TIME_MASK;
            let changed = place.fingerprint | full_at;
            let order = Ordering::Relaxed;
            // Another thread has succeeded if this fails.
            if place.set.0[way].compare_exchange_weak(bucket, changed, order, order).is_ok() {
                return spending;
            }
        }
    }

    fn place(&self, key: KeyHash) -> Place<'_> {
        let KeyHash(hash) = key;
        // The high bits choose the set; the low ones tell its keys apart.
        let index = ((u128::from(hash) * self.sets.len() as u128) >> 64) as usize;
        Place { set: &self.sets[index], fingerprint: (hash << TIME_BITS).max(1 << TIME_BITS) }
    }
}

impl Place<'_> {
    /// The bucket of the key, or the one that it takes the place of, and its present word.
    fn find(&self, ticks: &Ticks, now: u64) -> (usize, u64) {
        for (way, bucket) in self.set.0.iter().enumerate() {
            let bucket = bucket.load(Ordering::Relaxed);
            if bucket & !TIME_MASK == self.fingerprint {
                return (way, bucket);
            }
        }
        self.soonest(ticks, now)
    }

    #[cold]
    fn soonest(&self, ticks: &Ticks, now: u64) -> (usize, u64) {
        let buckets = self.set.0.iter().map(|bucket| bucket.load(Ordering::Relaxed)).enumerate();
        buckets.min_by_key(|(_, bucket)| ticks.debt(*bucket, now)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
