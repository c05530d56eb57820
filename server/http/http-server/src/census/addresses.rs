//! [`Addresses`]: the connections and streams of all shards by client address.
//!
//! Each shard has an [`Address`] while it has a connection of that address, and counts in its lease of it.
//! Invariants: the map is locked only when a shard's first connection of an address opens and when its last
//! one closes; an address that no shard has is not in the map.

use super::lock;
use outboard_buffer::{Lease, Quota};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Shards that open connections at the same time lock different parts of the map.
const STRIPES: usize = 16;
/// A shard takes the right to so many connections and streams of an address at once, at most.
const IN_ADVANCE: usize = 64;
/// The bits of [`Address::idle`]: shards beyond share those of others.
pub(super) const PLACES: usize = u64::BITS as usize;

/// See the module.
#[derive(Debug)]
pub(super) struct Addresses {
    stripes: [Mutex<HashMap<IpAddr, Weak<Address>>>; STRIPES],
    hasher: RandomState,
    shards: usize,
}

/// What all shards know of an address.
#[derive(Debug)]
pub(crate) struct Address {
    open: Arc<Quota>,
    /// The shards that have had an idle connection since they were last asked to close one.
    idle: AtomicU64,
}

impl Addresses {
    pub(super) fn new(shards: usize) -> Self {
        Self { stripes: Default::default(), hasher: RandomState::new(), shards }
    }

    fn stripe(&self, address: IpAddr) -> &Mutex<HashMap<IpAddr, Weak<Address>>> {
        &self.stripes[self.hasher.hash_one(address) as usize % STRIPES]
    }

    pub(super) fn get(&self, address: IpAddr) -> Arc<Address> {
        let mut stripe = lock(self.stripe(address));
        if let Some(known) = stripe.get(&address).and_then(Weak::upgrade) {
            return known;
        }
        let open = Quota::new(self.shards, IN_ADVANCE);
        let new = Arc::new(Address { open, idle: AtomicU64::new(0) });
        stripe.insert(address, Arc::downgrade(&new));
        new
    }

    pub(super) fn forget(&self, address: IpAddr) {
        let mut stripe = lock(self.stripe(address));
        if stripe.get(&address).is_some_and(|known| known.strong_count() == 0) {
            stripe.remove(&address);
        }
    }

    /// The number of addresses.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| lock(stripe).len()).sum()
    }
}

impl Address {
    /// A shard's right to connections and streams.
    pub(crate) fn lease(&self) -> Lease {
        Lease::new(&self.open)
    }

    /// Notes that a shard has an idle connection.
    pub(crate) fn note_idle(&self, shard: usize) {
        self.idle.fetch_or(place_of(shard), Ordering::Relaxed);
    }

    /// Notes that a shard has no idle connection.
    pub(crate) fn note_busy(&self, shard: usize) {
        self.idle.fetch_and(!place_of(shard), Ordering::Relaxed);
    }

    /// The place of a shard other than `own` that has noted an idle connection. That note is gone then, so
    /// that one connection makes room for one.
    pub(super) fn claim(&self, own: usize) -> Option<usize> {
        loop {
            let others = self.idle.load(Ordering::Relaxed) & !place_of(own);
            if others == 0 {
                return None;
            }
            let place = others.trailing_zeros() as usize;
            let before = self.idle.fetch_and(!place_of(place), Ordering::Relaxed);
            if before & place_of(place) != 0 {
                return Some(place);
            }
        }
    }
}

fn place_of(shard: usize) -> u64 {
    1 << (shard % PLACES)
}
