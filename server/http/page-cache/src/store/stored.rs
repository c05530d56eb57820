//! An entry in a store, as all shards see it.
//!
//! Created and changed only by [`super::Store`], under the lock of the store's owner; the fronts of the
//! shards hold it and read it without a lock. Invariants: the entry never changes; the edition changes
//! before the store's call returns that removes or replaces the entry or adds another variant of its
//! URL, so that a front which compares it uses an entry only while the store would choose it too.

use super::PurgeEpoch;
use crate::entry::Entry;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The use counter saturates here.
const USES_MAX: u8 = 3;
/// The edition of an entry that its store no longer has.
const GONE: u64 = 0;

/// See the module.
#[derive(Debug)]
pub struct Stored {
    entry: Entry,
    since: PurgeEpoch,
    /// [`GONE`], or the number of changes to the variants of its URL.
    edition: AtomicU64,
    uses: AtomicU8,
}

impl Stored {
    pub(super) fn new(entry: Entry, since: PurgeEpoch) -> Self {
        Self { entry, since, edition: AtomicU64::new(GONE + 1), uses: AtomicU8::new(0) }
    }

    /// An entry that no store has.
    pub(crate) fn without_store(entry: Entry) -> Self {
        Self { edition: AtomicU64::new(GONE), ..Self::new(entry, PurgeEpoch(0)) }
    }

    /// The epoch in which it was stored: no purge up to then selects it.
    pub fn since(&self) -> PurgeEpoch {
        self.since
    }

    /// Its edition, to be compared later.
    pub(crate) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// Whether the store still has it, and no other variants than at that edition.
    pub(crate) fn is_current(&self, edition: u64) -> bool {
        edition != GONE && self.edition() == edition
    }

    /// Notes that its URL has another variant.
    pub(super) fn note_change(&self) {
        // Only the store writes, under its lock.
        self.edition.store(self.edition.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Notes that the store no longer has it.
    pub(super) fn retire(&self) {
        self.edition.store(GONE, Ordering::Release);
    }

    /// Counts a use. A page that is used often is only read, so that its cache line stays in the caches
    /// of all processors; a use that another shard's overwrites is not missed.
    pub(crate) fn touch(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < USES_MAX {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    pub(super) fn inherit_uses(&self, other: &Self) {
        self.uses.store(other.uses.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether the entry was used more than once while new, or since its last round in the main queue;
    /// deducts the round from the counter.
    pub(super) fn has_earned_a_round(&self, is_main: bool) -> bool {
        let uses = self.uses.load(Ordering::Relaxed);
        let (left, has_earned) = match is_main {
            true => (uses.saturating_sub(1), uses > 0),
            false => (0, uses > 1),
        };
        self.uses.store(left, Ordering::Relaxed);
        has_earned
    }

    /// Its memory in bytes.
    pub(super) fn cost_bytes(&self) -> usize {
        self.entry.cost_bytes() + size_of::<Self>() - size_of::<Entry>()
    }
}

impl Deref for Stored {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}
