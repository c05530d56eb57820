//! The entries in memory, within a budget of bytes.
//!
//! Owned by the I/O thread. Eviction is S3-FIFO: a small queue holds new entries, a main queue those
//! that were requested again, and a ghost table of recent evictions lets a returning entry enter the
//! main queue at once. Most URLs of a public site are requested once (crawlers, query strings): those
//! pass through a tenth of the budget and evict no entry that is used; a hit only raises a counter,
//! where LRU would relink a list. Large entries are rejected by a bound rather than weighed: a page
//! costs its rendering, not its bytes.
//!
//! Invariant: the memory of entries and indices, as counted by [`Store::used_bytes`], is at most the
//! budget after each call.

mod already_hashed;
mod ghost;
mod queue;

use crate::entry::{Entry, Shared};
use crate::freshness::Freshness;
use crate::key::Key;
use crate::purge::Selector;
use crate::purge_index::PurgeIndex;
use crate::purge_log::PurgeLog;
use crate::reason::Reason;
use already_hashed::AlreadyHashed;
use ghost::Ghost;
use queue::{Queue, Slot, Slots};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, RandomState};

/// The most variants of one URL; another one evicts the oldest.
const VARIANTS_MAX: usize = 64;

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
}

/// The number of purges so far: an entry whose rendering began in an earlier epoch may be outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
pub enum Found {
    /// The entry that matches.
    Entry(Shared),
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
        &mut self,
        key: &impl AsRef<[u8]>,
        mut matches: impl FnMut(&Entry) -> bool,
    ) -> Found {
        let mut best: Option<u32> = None;
        let mut has_others = false;
        let mut at = self.index.get(&self.hasher.hash_one(key.as_ref())).copied();
        while let Some(number) = at {
            let slot = self.slots.get(number);
            at = slot.chained;
            if slot.entry.key.bytes() != key.as_ref() {
                continue;
            }
            has_others = true;
            let is_later = |other: u32| slot.entry.date_s() >= self.slots.get(other).entry.date_s();
            if matches(&slot.entry) && best.is_none_or(is_later) {
                best = Some(number);
            }
        }
        match best {
            Some(number) => {
                let slot = self.slots.get_mut(number);
                slot.touch();
                Found::Entry(slot.entry.clone())
            }
            None if has_others => Found::OtherVariants,
            None => Found::Nothing,
        }
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
    ) -> Result<Shared, Reason> {
        if self.purges.concerns(began.0, &entry) {
            return Err(Reason::PurgedMeanwhile);
        }
        // One entry must not evict most of the others.
        let cost_bytes = entry.cost_bytes();
        if cost_bytes > self.budget_bytes / 4 {
            return Err(Reason::TooLarge);
        }
        let entry = Shared::new(entry);
        let hash = self.hash(&entry.key);
        self.remove_where(hash, |other| other.key == entry.key && other.variant == entry.variant);
        self.bound_variants(hash, &entry.key);
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
    pub fn replace(&mut self, old: &Shared, new: Entry) -> Option<Shared> {
        let hash = self.hash(&old.key);
        let number =
            self.chain(hash).find(|&number| Shared::ptr_eq(&self.slots.get(number).entry, old))?;
        Some(self.replace_slot(number, new))
    }

    /// Purges the selected entries and returns their number.
    pub fn purge(&mut self, selector: Selector, purge: Purge) -> usize {
        let selected = self.purge_index.selected(&selector);
        for &number in &selected {
            match purge {
                Purge::Hard => self.remove(number),
                Purge::Soft { now_s, grace_s } => {
                    let entry = self.slots.get(number).entry.expired(now_s, grace_s);
                    self.replace_slot(number, entry);
                }
            }
        }
        self.purges.note(self.purges.latest() + 1, selector);
        self.counts.purged += selected.len() as u64;
        selected.len()
    }

    /// Whether a purge since `began` selected this entry, or may have.
    pub fn was_purged(&self, began: PurgeEpoch, entry: &Entry) -> bool {
        self.purges.concerns(began.0, entry)
    }

    /// All entries, unordered.
    pub fn iter(&self) -> impl Iterator<Item = &Shared> {
        self.slots.iter().map(|(_, slot)| &slot.entry)
    }

    fn hash(&self, key: &Key) -> u64 {
        self.hasher.hash_one(&key.bytes[..])
    }

    /// The slots of the entries with a hash.
    fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        let first = self.index.get(&hash).copied();
        std::iter::successors(first, |&number| self.slots.get(number).chained)
    }

    fn replace_slot(&mut self, number: u32, entry: Entry) -> Shared {
        let entry = Shared::new(entry);
        let slot = self.slots.get_mut(number);
        self.purge_index.remove(&slot.entry, number);
        self.purge_index.add(&entry, number);
        let (old_bytes, new_bytes) = (slot.entry.cost_bytes(), entry.cost_bytes());
        slot.entry = entry.clone();
        let queue = if slot.is_main { &mut self.main } else { &mut self.small };
        queue.resize(old_bytes, new_bytes);
        self.entries_bytes = self.entries_bytes - old_bytes + new_bytes;
        self.make_room(0);
        entry
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
        self.slots.free(number);
    }

    fn make_room(&mut self, now_s: u64) {
        while self.used_bytes() > self.budget_bytes && self.slots.len() > 0 {
            let from_small =
                self.small.bytes > self.budget_bytes / 10 || self.main.oldest().is_none();
            let oldest = if from_small { self.small.oldest() } else { self.main.oldest() };
            let Some(number) = oldest else { return };
            self.pass_or_evict(number, now_s);
        }
    }

    /// Gives the oldest entry of a queue another round in the main queue if it was requested, and
    /// evicts it otherwise.
    fn pass_or_evict(&mut self, number: u32, now_s: u64) {
        let slot = self.slots.get_mut(number);
        let is_of_use = is_of_use(&slot.entry.times, now_s);
        let is_main = slot.is_main;
        if !is_of_use || !slot.has_earned_a_round() {
            if !is_main {
                self.ghost.add(slot.hash);
            }
            self.counts.evicted += 1;
            return self.remove(number);
        }
        let cost_bytes = slot.entry.cost_bytes();
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.unlink(&mut self.slots, number, cost_bytes);
        self.slots.get_mut(number).is_main = true;
        self.main.push(&mut self.slots, number, cost_bytes);
    }
}

/// Whether an entry can still be used without its origin.
fn is_of_use(times: &Freshness, now_s: u64) -> bool {
    now_s == u64::MAX || times.useful_until_s() >= now_s
}
