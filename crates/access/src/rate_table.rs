//! [`RateTable`]: the buckets of the clients of one rate limit.
//!
//! Shared by all threads of the gateway, without locks. Each key hashes to a set of [`WAYS`] buckets, and
//! may be in any of these. Invariants:
//!
//! * The memory is allocated once; a key costs 16 bytes, and an address nothing beyond.
//! * A key that is not in a full set takes the place of the bucket that is full the soonest, **and its
//!   tokens**. So buckets that are full again are replaced first; and as the least debt of a set only
//!   grows, a client whose bucket was replaced never finds more tokens than it would have had. A client
//!   gains nothing by filling the table with other addresses; new clients of that set share a bucket then.
//! * Threads that race for a bucket admit at most one request more each.

use crate::rate::{Rate, Spending};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets that a key can be in: two cache lines of fingerprints.
const WAYS: usize = 16;

/// See the module.
#[derive(Debug)]
pub struct RateTable {
    rate: Rate,
    /// Keyed, so that clients cannot choose addresses that collide.
    hasher: RandomState,
    sets: Box<[Set]>,
}

/// Buckets of one hash.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set {
    /// A hash of the key; 0: free.
    fingerprints: [AtomicU64; WAYS],
    /// When the bucket is full again.
    full_at_ns: [AtomicU64; WAYS],
}

impl RateTable {
    /// For so many clients at the same time. There is twice the room, so that hardly any set is full before.
    pub fn new(rate: Rate, clients: usize) -> Self {
        let sets = (clients.max(1) * 2).div_ceil(WAYS);
        let sets = std::iter::repeat_with(Set::default).take(sets).collect();
        Self { rate, hasher: RandomState::new(), sets }
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
    pub fn spend(&self, key: impl Hash, now_ns: u64) -> Spending {
        let hash = self.hasher.hash_one(key);
        // The high bits choose the set; all of them tell keys apart.
        let index = ((u128::from(hash) * self.sets.len() as u128) >> 64) as usize;
        let set = &self.sets[index];
        set.bucket(hash.max(1)).spend(&self.rate, now_ns)
    }
}

impl Set {
    fn bucket(&self, fingerprint: u64) -> Bucket<'_> {
        // As many attempts as other threads can have changed buckets meanwhile, for practical purposes.
        for _ in 0..WAYS {
            let mut found = self.fingerprints.iter();
            if let Some(way) = found.position(|other| other.load(Ordering::Relaxed) == fingerprint)
            {
                return Bucket(&self.full_at_ns[way]);
            }
            let way = self.soonest();
            let present = self.fingerprints[way].load(Ordering::Relaxed);
            let order = Ordering::Relaxed;
            if self.fingerprints[way].compare_exchange(present, fingerprint, order, order).is_ok() {
                return Bucket(&self.full_at_ns[way]);
            }
        }
        Bucket(&self.full_at_ns[self.soonest()])
    }

    /// The bucket that is full the soonest, or is already.
    fn soonest(&self) -> usize {
        let times = self.full_at_ns.iter().map(|time| time.load(Ordering::Relaxed));
        times.enumerate().min_by_key(|(_, time)| *time).map_or(0, |(way, _)| way)
    }
}

/// The time at which the bucket of a key is full.
struct Bucket<'a>(&'a AtomicU64);

impl Bucket<'_> {
    fn spend(&self, rate: &Rate, now_ns: u64) -> Spending {
        let mut full_at_ns = self.0.load(Ordering::Relaxed);
        loop {
            let (next, spending) = rate.spend(full_at_ns, now_ns);
            let Some(next) = next else { return spending };
            let order = Ordering::Relaxed;
            match self.0.compare_exchange_weak(full_at_ns, next, order, order) {
                Ok(_) => return spending,
                Err(changed) => full_at_ns = changed,
            }
        }
    }
}

#[cfg(test)]
mod tests;
