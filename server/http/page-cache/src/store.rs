//! The entries in memory, within a budget of bytes.
//!
//! Owned by the pages of a cache, under a lock. Eviction is S3-FIFO: a small queue holds new entries, a main queue those
//! that were requested again, and a ghost table of recent evictions lets a returning entry enter the
//! main queue at once. Most URLs of a public site are requested once (crawlers, query strings): those
//! pass through a tenth of the budget and evict no entry that is used; a hit only raises a counter,
//! where LRU would relink a list. Large entries are rejected by a bound rather than weighed: a page
//! costs its rendering, not its bytes.
//!
//! Invariants: the memory of entries and indices, as counted by [`Store::used_bytes`], is at most the
//! budget after each call; an entry that was removed is not current ([`Stored`]) after the call.

mod eviction;
mod ghost;
mod queue;
mod stored;

use crate::already_hashed::AlreadyHashed;
use crate::entry::{Entry, latest};
use crate::key::Key;
use crate::purge::Selector;
use crate::purge_index::PurgeIndex;
use crate::purge_log::PurgeLog;
use crate::reason::Reason;
use ghost::Ghost;
use queue::{Queue, Slot, Slots};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, RandomState};
use std::sync::Arc;

pub use stored::Stored;

/// The most variants of one URL; another one evicts the oldest.
const VARIANTS_MAX: usize = 64;
/// The share of the budget that removed entries may take that others still hold.
const HELD_SHARE: usize = 16;

/// Responses within a byte budget.
#[derive(Debug)]
pub struct Store {
    budget_bytes: usize,
    entries_bytes: usize,
    /// The first slot of each hash; the others are chained to it.
    index: HashMap<u64, u32, BuildHasherDefault<AlreadyHashed>>,
    slots: Slots,
    purge_index: PurgeIndex<u32>,
    small: Queue,
    main: Queue,
    ghost: Ghost,
    purges: PurgeLog,
    hasher: RandomState,
    counts: Counts,
    /// The memory of entries that others held when they were removed, since the last request to drop
    /// them.
    held_bytes: usize,
}

/// The number of purges so far: an entry whose rendering began in an earlier epoch may be outdated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PurgeEpoch(u64);

/// Events since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries stored, replacements included.
    pub stored: u64,
    /// Entries evicted.
    pub evicted: u64,
    /// Entries purged, hard or soft.
    pub purged: u64,
}

/// The result of a lookup.
#[derive(Debug)]
pub enum Found<E> {
    /// The entry that matches.
    Entry(E),
    /// Entries of the URL, but none that matches the request's fields.
    OtherVariants,
    /// Nothing.
    Nothing,
}

/// How a purge treats the entries that it selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// They are removed.
    Hard,
    /// They become stale and may be used during a revalidation.
    Soft {
        /// The time now, in seconds since 1970.
        now_s: u64,
        /// How long they may be used, in seconds.
        grace_s: u32,
    },
}

impl Store {
    /// An empty store.
    pub fn new(budget_bytes: usize) -> Self {
        Self {
            budget_bytes,
            entries_bytes: 0,
            index: HashMap::default(),
            slots: Slots::default(),
            purge_index: PurgeIndex::default(),
            small: Queue::default(),
            main: Queue::default(),
            ghost: Ghost::new(budget_bytes),
            purges: PurgeLog::default(),
            hasher: RandomState::new(),
            counts: Counts::default(),
            held_bytes: 0,
        }
    }

    /// Changes the budget and evicts the excess.
    pub fn set_budget(&mut self, budget_bytes: usize) {
        self.budget_bytes = budget_bytes;
        self.make_room(u64::MAX);
    }

    /// The memory of everything, in bytes.
    pub fn used_bytes(&self) -> usize {
        // A hash table has eight buckets for seven entries, and a byte of control for each.
        let buckets = self.index.capacity().div_ceil(7) * 8;
        let index = buckets * (size_of::<(u64, u32)>() + 1);
        self.entries_bytes
            + index
            + self.purge_index.allocated_bytes()
            + self.slots.allocated_bytes()
            + self.ghost.allocated_bytes()
    }

    /// The budget in bytes.
    pub fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Events since the start.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The present epoch; taken when a rendering begins, for [`Self::insert`].
    pub fn purge_epoch(&self) -> PurgeEpoch {
        PurgeEpoch(self.purges.latest())
    }

    /// The entry under `key` for which `matches` holds; of several the latest (RFC 9111 4).
    pub fn find(
        &self,
        key: &impl AsRef<[u8]>,
        matches: impl FnMut(&Entry) -> bool,
    ) -> Found<Arc<Stored>> {
        let mut variants = self.variants(key.as_ref()).map(|one| (&***one, one)).peekable();
        if variants.peek().is_none() {
            return Found::Nothing;
        }
        match latest(variants, matches) {
            Some(stored) => {
                stored.touch();
                Found::Entry(stored.clone())
            }
            None => Found::OtherVariants,
        }
    }

    /// All entries under `key`.
    pub(crate) fn variants<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a Arc<Stored>> {
        let chain = self.chain(self.hasher.hash_one(key));
        let entries = chain.map(|number| &self.slots.get(number).entry);
        entries.filter(move |entry| entry.key.bytes() == key)
    }

    /// Stores an entry in place of the one for the same requests. `began` is the epoch in which its
    /// rendering began.
    ///
    /// # Errors
    /// The entry is too large, or was purged during its rendering.
    pub fn insert(
        &mut self,
        entry: Entry,
        began: PurgeEpoch,
        now_s: u64,
    ) -> Result<Arc<Stored>, Reason> {
        if self.purges.concerns(began.0, &entry) {
            return Err(Reason::PurgedMeanwhile);
        }
        let entry = Arc::new(Stored::new(entry, self.purge_epoch()));
        // One entry must not evict most of the others.
        let cost_bytes = entry.cost_bytes();
        if cost_bytes > self.budget_bytes / 4 {
            return Err(Reason::TooLarge);
        }
        let hash = self.hash(&entry.key);
        self.remove_where(hash, |other| other.key == entry.key && other.variant == entry.variant);
        self.bound_variants(hash, &entry.key);
        self.variants(entry.key.bytes()).for_each(|other| other.note_change());
        let mut slot = Slot::new(entry.clone(), hash, self.index.get(&hash).copied());
        slot.is_main = self.ghost.take(hash);
        let queue = if slot.is_main { &mut self.main } else { &mut self.small };
        let number = self.slots.add(slot);
        self.index.insert(hash, number);
        self.purge_index.add(&entry, number);
        self.entries_bytes += cost_bytes;
        queue.push(&mut self.slots, number, cost_bytes);
        self.counts.stored += 1;
        self.make_room(now_s);
        Ok(entry)
    }

    /// Replaces the entry that `new` was derived from, unless it has been removed.
    pub fn replace(&mut self, old: &Arc<Stored>, new: Entry) -> Option<Arc<Stored>> {
        let hash = self.hash(&old.key);
        let number =
            self.chain(hash).find(|&number| Arc::ptr_eq(&self.slots.get(number).entry, old))?;
        Some(self.replace_slot(number, new))
    }

    /// Purges the selected entries and returns their number.
    pub fn purge(&mut self, selector: Selector, purge: Purge) -> usize {
        let selected = self.purge_index.selected(&selector);
        // Entries that a soft purge leaves are newer than it.
        self.purges.note(self.purges.latest() + 1, selector);
        for &number in &selected {
            match purge {
                Purge::Hard => self.remove(number),
                Purge::Soft { now_s, grace_s } => {
                    let entry = self.slots.get(number).entry.expired(now_s, grace_s);
                    self.replace_slot(number, entry);
                }
            }
        }
        self.counts.purged += selected.len() as u64;
        selected.len()
    }

    /// Whether a purge since `began` selected this entry, or may have.
    pub fn was_purged(&self, began: PurgeEpoch, entry: &Entry) -> bool {
        self.purges.concerns(began.0, entry)
    }

    /// All entries, unordered.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().map(|(_, slot)| &**slot.entry)
    }

    /// Whether those that hold removed entries have to drop them now: since the last time these take a
    /// sixteenth of the budget.
    pub(crate) fn take_held_too_much(&mut self) -> bool {
        let is_too_much = self.held_bytes > self.budget_bytes / HELD_SHARE;
        if is_too_much {
            self.held_bytes = 0;
        }
        is_too_much
    }

    fn hash(&self, key: &Key) -> u64 {
        self.hasher.hash_one(&key.bytes[..])
    }

    /// The slots of the entries with a hash.
    fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        let first = self.index.get(&hash).copied();
        std::iter::successors(first, |&number| self.slots.get(number).chained)
    }

    fn replace_slot(&mut self, number: u32, entry: Entry) -> Arc<Stored> {
        let entry = Arc::new(Stored::new(entry, self.purge_epoch()));
        let old = std::mem::replace(&mut self.slots.get_mut(number).entry, entry.clone());
        entry.inherit_uses(&old);
        // The new one may be the latest of the variants now.
        self.variants(entry.key.bytes()).for_each(|other| other.note_change());
        self.purge_index.remove(&old, number);
        self.purge_index.add(&entry, number);
        let (old_bytes, new_bytes) = (old.cost_bytes(), entry.cost_bytes());
        let is_main = self.slots.get(number).is_main;
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.resize(old_bytes, new_bytes);
        self.entries_bytes = self.entries_bytes - old_bytes + new_bytes;
        self.retire(&old, old_bytes);
        self.make_room(0);
        entry
    }

    /// An entry is no longer that of a slot.
    fn retire(&mut self, entry: &Arc<Stored>, cost_bytes: usize) {
        entry.retire();
        // One is the caller's. Others are created only from entries that a store has.
        if Arc::strong_count(entry) > 1 {
            self.held_bytes += cost_bytes;
        }
    }

    fn remove_where(&mut self, hash: u64, is_meant: impl Fn(&Entry) -> bool) {
        let found: Vec<u32> =
            self.chain(hash).filter(|&number| is_meant(&self.slots.get(number).entry)).collect();
        found.into_iter().for_each(|number| self.remove(number));
    }

    fn bound_variants(&mut self, hash: u64, key: &Key) {
        let variants: Vec<u32> =
            self.chain(hash).filter(|&number| self.slots.get(number).entry.key == *key).collect();
        if variants.len() >= VARIANTS_MAX
            && let Some(&oldest) = variants.last()
        {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, number: u32) {
        let hash = self.slots.get(number).hash;
        let before = self.chain(hash).find(|&other| self.slots.get(other).chained == Some(number));
        let after = self.slots.get(number).chained;
        match (before, after) {
            (Some(before), after) => self.slots.get_mut(before).chained = after,
            (None, Some(after)) => {
                self.index.insert(hash, after);
            }
            (None, None) => {
                self.index.remove(&hash);
            }
        }
        let slot = self.slots.get(number);
        let cost_bytes = slot.entry.cost_bytes();
        self.purge_index.remove(&slot.entry, number);
        let queue = if slot.is_main { &mut self.main } else { &mut self.small };
        queue.unlink(&mut self.slots, number, cost_bytes);
        self.entries_bytes -= cost_bytes;
        let slot = self.slots.take(number);
        self.retire(&slot.entry, cost_bytes);
    }
}
