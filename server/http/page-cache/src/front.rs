//! The pages that one shard has used, for its hits.
//!
//! Owned by the shard's [`crate::PageCache`], which fills it from the store. A hit here takes no lock and
//! writes nothing that another shard reads or writes, apart from the first uses of a page. A front has
//! all variants of a URL or none, since the latest that matches is to be used.
//!
//! Invariants: an entry is found only while it is current ([`Stored`]); the front has at most its number
//! of entries, which take about 200 bytes each. It holds on to entries that the store has removed until
//! it is swept: the store requests that before these take more than a share of the budget.

use crate::already_hashed::AlreadyHashed;
use crate::entry::{Entry, latest};
use crate::shared::Shared;
use crate::store::Stored;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, RandomState};
use std::sync::Arc;

/// The budget of the store per entry of a front: this has the larger part of the pages of a usual site,
/// and takes an eightieth of the budget.
const BUDGET_BYTES_PER_ENTRY: usize = 16 << 10;
const ENTRIES_MIN: usize = 256;
const ENTRIES_MAX: usize = 1 << 16;
/// The places that are looked at for one that can leave.
const LOOKED_AT_MAX: usize = 16;
/// The places that are swept at once.
const SWEPT_AT_ONCE: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct Front {
    /// The place of each hash.
    index: HashMap<u64, u32, BuildHasherDefault<AlreadyHashed>>,
    places: Vec<Place>,
    entries: usize,
    entries_max: usize,
    /// The place that may have to leave next (CLOCK).
    hand: usize,
    hasher: RandomState,
}

/// The variants of a URL; of two URLs with the same hash, those of the one that was used last.
#[derive(Debug)]
struct Place {
    hash: u64,
    variants: Vec<Variant>,
    /// Whether it was used since the hand passed.
    is_used: bool,
}

/// An entry, and its edition when the variants were read.
#[derive(Debug)]
pub(crate) struct Variant {
    entry: Shared,
    edition: u64,
}

impl Variant {
    /// A variant as the store has it now; read together with the others of its URL.
    pub(crate) fn of(stored: &Arc<Stored>) -> Self {
        Self { edition: stored.edition(), entry: stored.clone().into() }
    }

    fn is_current(&self) -> bool {
        self.entry.stored().is_current(self.edition)
    }
}

impl Front {
    /// An empty front of a store with this budget.
    pub(crate) fn new(budget_bytes: usize) -> Self {
        Self {
            index: HashMap::default(),
            places: Vec::new(),
            entries: 0,
            entries_max: (budget_bytes / BUDGET_BYTES_PER_ENTRY).clamp(ENTRIES_MIN, ENTRIES_MAX),
            hand: 0,
            hasher: RandomState::new(),
        }
    }

    /// The entry under `key` for which `matches` holds, as [`crate::Store::find`] would find it; `None`
    /// if only the store can tell.
    pub(crate) fn find(
        &mut self,
        key: &[u8],
        matches: impl FnMut(&Entry) -> bool,
    ) -> Option<Shared> {
        let number = *self.index.get(&self.hasher.hash_one(key))?;
        let place = &mut self.places[number as usize];
        let variants = place.variants.iter().filter(|one| one.entry.key.bytes() == key);
        let found = latest(variants.map(|one| (&*one.entry, one)), matches)?;
        if found.is_current() {
            place.is_used = true;
            found.entry.stored().touch();
            return Some(found.entry.clone());
        }
        self.remove(number as usize);
        None
    }

    /// Adds all variants of a URL.
    pub(crate) fn put(&mut self, key: &[u8], variants: Vec<Variant>) {
        let hash = self.hasher.hash_one(key);
        if let Some(&number) = self.index.get(&hash) {
            self.remove(number as usize);
        }
        let number = u32::try_from(self.places.len()).expect("a place has an entry or more");
        self.index.insert(hash, number);
        self.entries += variants.len();
        self.places.push(Place { hash, variants, is_used: true });
        while self.entries > self.entries_max {
            let leaving = self.leaving();
            self.remove(leaving);
        }
    }

    /// A place that was not used of late, or that the store has changed.
    fn leaving(&mut self) -> usize {
        for _ in 0..LOOKED_AT_MAX {
            self.hand = (self.hand + 1) % self.places.len();
            let place = &mut self.places[self.hand];
            if !std::mem::take(&mut place.is_used) || !place.is_current() {
                break;
            }
        }
        self.hand
    }

    fn remove(&mut self, number: usize) {
        let place = self.places.swap_remove(number);
        self.entries -= place.variants.len();
        self.index.remove(&place.hash);
        if let Some(moved) = self.places.get(number) {
            self.index.insert(moved.hash, number as u32);
        }
    }

    /// Drops what the store has changed from some of the places before this one; returns the place to
    /// continue before, 0 at the end. A sweep starts with [`Self::places`].
    pub(crate) fn sweep(&mut self, before: usize) -> usize {
        let before = before.min(self.places.len());
        let first = before.saturating_sub(SWEPT_AT_ONCE);
        for number in (first..before).rev() {
            if !self.places[number].is_current() {
                self.remove(number);
            }
        }
        first
    }

    /// The number of places.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }
}

impl Place {
    fn is_current(&self) -> bool {
        self.variants.iter().all(Variant::is_current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_s;
    use crate::purge::Selector;
    use crate::store::{Found, Purge, Store};
    use crate::test_support::{entry, entry_with, key};

    /// A store, and the front of a shard.
    struct Tiers {
        store: Store,
        front: Front,
    }

    impl Tiers {
        fn new() -> Self {
            Self { store: Store::new(1 << 20), front: Front::new(1 << 20) }
        }

        fn insert(&mut self, entry: Entry) -> Arc<Stored> {
            let epoch = self.store.purge_epoch();
            self.store.insert(entry, epoch, now_s()).unwrap()
        }

        /// What a lookup in the front finds.
        fn front(&mut self, path: &str) -> Option<Shared> {
            self.front.find(key(path).bytes(), |_| true)
        }

        /// Looks a page up in the store and fills the front.
        fn use_stored(&mut self, path: &str) {
            let key = key(path);
            assert!(matches!(self.store.find(&key, |_| true), Found::Entry(_)));
            let variants = self.store.variants(key.bytes()).map(Variant::of).collect();
            self.front.put(key.bytes(), variants);
        }
    }

    #[test]
    fn a_page_is_found_as_long_as_the_store_has_it() {
        let mut tiers = Tiers::new();
        for path in ["/purged", "/expired", "/replaced", "/kept"] {
            tiers.insert(entry(path, now_s()));
            assert!(tiers.front(path).is_none());
            tiers.use_stored(path);
        }
        assert!(Arc::ptr_eq(
            tiers.front("/kept").unwrap().stored(),
            tiers.front("/kept").unwrap().stored()
        ));
        tiers.store.purge(Selector::url(b"/purged"), Purge::Hard);
        let soft = Purge::Soft { now_s: now_s(), grace_s: 60 };
        tiers.store.purge(Selector::url(b"/expired"), soft);
        tiers.insert(entry("/replaced", now_s()));
        for path in ["/purged", "/expired", "/replaced"] {
            assert!(tiers.front(path).is_none(), "{path}");
        }
        assert!(tiers.front("/kept").is_some());
    }

    #[test]
    fn another_variant_may_be_a_better_match() {
        let mut tiers = Tiers::new();
        tiers.insert(entry("/", now_s() - 10));
        tiers.use_stored("/");
        let later = tiers.insert(entry_with("/", now_s(), &[(b"Vary", b"X")]));
        assert!(tiers.front("/").is_none(), "the store has another variant");
        tiers.use_stored("/");
        assert!(Arc::ptr_eq(tiers.front("/").unwrap().stored(), &later));
    }

    #[test]
    fn the_front_is_bounded_and_keeps_what_is_used() {
        let mut tiers = Tiers::new();
        tiers.store.set_budget(16 << 20);
        tiers.insert(entry("/used", now_s()));
        tiers.use_stored("/used");
        for number in 0..2 * ENTRIES_MIN {
            let path = format!("/{number}");
            tiers.insert(entry(&path, now_s()));
            tiers.use_stored(&path);
            assert!(tiers.front("/used").is_some(), "after {number}");
        }
        assert_eq!((tiers.front.entries, tiers.front.index.len()), (ENTRIES_MIN, ENTRIES_MIN));
    }

    #[test]
    fn a_sweep_drops_what_the_store_has_removed() {
        let mut tiers = Tiers::new();
        let paths: Vec<String> = (0..200).map(|number| format!("/{number}")).collect();
        let stored: Vec<_> =
            paths.iter().map(|path| Arc::downgrade(&tiers.insert(entry(path, now_s())))).collect();
        paths.iter().for_each(|path| tiers.use_stored(path));
        tiers.store.purge(Selector::prefix(b"/1"), Purge::Hard);
        let is_held = |number: usize| stored[number].strong_count() > 0;
        assert!(is_held(1), "by the front");
        assert!(tiers.store.take_held_too_much() && !tiers.store.take_held_too_much());
        assert_eq!(tiers.front.sweep(tiers.front.places()), 0);
        for (number, path) in paths.iter().enumerate() {
            assert_eq!(is_held(number), !path.starts_with("/1"), "{path}");
            assert_eq!(tiers.front(path).is_some(), is_held(number));
        }
    }
}
