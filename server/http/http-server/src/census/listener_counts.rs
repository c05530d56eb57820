//! [`ListenerCounts`]: the open connections of listeners with limits of their own, by address.
//!
//! Owned by the census, so that all shards count together; used when a connection opens and when it closes,
//! never for a request. Invariants: an address is held only while it has a connection, so that the memory is
//! bounded by the connections; a connection is counted until its [`Place`] is dropped, also if a reload changes
//! the limits meanwhile.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Threads that open connections at the same time rarely wait for each other.
const PARTS: usize = 16;

/// A listener by its name, and an address; `None`: all addresses.
type Key = (Arc<str>, Option<IpAddr>);

/// The limits of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Its name.
    pub name: Arc<str>,
    /// Maximum open connections.
    pub max: Option<u32>,
    /// Maximum open connections of an address.
    pub max_of_address: Option<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ListenerCounts {
    hasher: RandomState,
    parts: [Mutex<HashMap<Key, u32>>; PARTS],
}

/// A connection that is counted, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    counts: Arc<ListenerCounts>,
    keys: Vec<Key>,
}

impl ListenerCounts {
    /// Counts a connection; `None` if there are too many. Without an address it counts only for all.
    pub(crate) fn enter(
        self: &Arc<Self>,
        limits: &ListenerLimits,
        address: Option<IpAddr>,
    ) -> Option<Place> {
        let mut place = Place { counts: self.clone(), keys: Vec::with_capacity(2) };
        let of_address = limits.max_of_address.and_then(|max| Some((Some(address?), max)));
        let of_all = limits.max.map(|max| (None, max));
        for (address, max) in of_all.into_iter().chain(of_address) {
            let key = (limits.name.clone(), address);
            let mut part = self.part(&key);
            let count = part.entry(key.clone()).or_default();
            // There is one at least, or this one is the first.
            if *count >= max {
                return None;
            }
            *count += 1;
            drop(part);
            place.keys.push(key);
        }
        Some(place)
    }

    fn part(&self, key: &Key) -> MutexGuard<'_, HashMap<Key, u32>> {
        let part = self.hasher.hash_one(key) as usize % PARTS;
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for key in &self.keys {
            let mut part = self.counts.part(key);
            let left = part.get(key).copied().unwrap_or_default();
            if left > 1 {
                part.insert(key.clone(), left - 1);
            } else {
                part.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_and_an_address_have_their_places_and_no_more() {
        let counts = Arc::<ListenerCounts>::default();
        let limits = |name: &str| ListenerLimits {
            name: name.into(),
            max: Some(5),
            max_of_address: Some(2),
        };
        let address = |last| Some(IpAddr::from([192, 0, 2, last]));
        let enter = |last| counts.enter(&limits("a"), address(last));
        let mut places: Vec<Place> = (0..2).map(|_| enter(1).unwrap()).collect();
        assert!(enter(1).is_none());
        places.extend((2..5).map(|last| enter(last).unwrap()));
        assert!(enter(9).is_none() && counts.enter(&limits("a"), None).is_none());
        // Another listener counts for itself.
        let other = counts.enter(&limits("b"), address(1)).unwrap();
        places.remove(0);
        places.push(enter(1).unwrap());
        assert!(enter(1).is_none());
        drop((places, other));
        let mut parts = counts.parts.iter();
        assert!(parts.all(|part| part.lock().unwrap().is_empty()));
    }
}
