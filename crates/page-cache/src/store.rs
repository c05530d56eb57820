//! The entries in memory, within a budget of bytes.
//!
//! Owned by the I/O thread, which calls everything here. Eviction is S3-FIFO: a small queue takes
//! what is new, a main queue what was asked for again, and a table of what was thrown away lately
//! lets something that comes back go to the main queue at once. It was chosen because most URLs of
//! a public site are asked for once (crawlers, query strings): those pass through a tenth of the
//! budget and push out nothing that is used; a hit only raises a counter, where LRU would relink
//! a list. Large entries are kept out by a bound rather than weighed: a page costs its rendering,
//! not its bytes.
//!
//! Invariant: what the entries and all indices take, as counted by [`Store::used_bytes`], is at
//! most the budget after each call.

mod ghost;
mod queue;

use crate::entry::{Entry, Key, Shared};
use crate::freshness::Freshness;
use crate::message::Fields;
use crate::purge::Selector;
use crate::purge_index::PurgeIndex;
use crate::purge_log::PurgeLog;
use crate::reason::Reason;
use crate::tags;
use ghost::Ghost;
use queue::{Queue, Slot, Slots};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// Most responses for one URL; more variants push out the oldest.
const VARIANTS_MAX: usize = 64;

/// Responses within a byte budget.
#[derive(Debug)]
pub struct Store {
    budget_bytes: usize,
    entries_bytes: usize,
    /// The first slot of the entries with a hash; they are chained.
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

/// A moment between two purges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

/// What happened to entries since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Stored, replacements included.
    pub stored: u64,
    /// Thrown away for want of room.
    pub evicted: u64,
    /// Purged, hard or soft.
    pub purged: u64,
}

/// What is there for a request.
#[derive(Debug)]
pub enum Found {
    /// The entry that answers it.
    Entry(Shared),
    /// Only entries for requests with other fields.
    OtherVariants,
    /// Nothing.
    Nothing,
}

/// How a purge treats what it selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// It is gone.
    Hard,
    /// It is stale, and may be used for so many seconds while a new one is made.
    Soft {
        /// The time now, in seconds since 1970.
        now_s: u64,
        /// In seconds.
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

    /// Changes the budget, and throws away what is too much.
    pub fn set_budget(&mut self, budget_bytes: usize) {
        self.budget_bytes = budget_bytes;
        self.make_room(u64::MAX);
    }

    /// What everything takes, in bytes.
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

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The moment that an answer begins to be made, for [`Self::insert`].
    pub fn stamp(&self) -> Stamp {
        Stamp(self.purges.latest())
    }

    /// The entry under `key` for which `answers` holds; of several the latest (RFC 9111 4).
    pub fn find(&mut self, key: &Key, mut answers: impl FnMut(&Entry) -> bool) -> Found {
        let mut best: Option<u32> = None;
        let mut has_others = false;
        let mut at = self.index.get(&self.hash(key)).copied();
        while let Some(number) = at {
            let slot = self.slots.get(number);
            at = slot.chained;
            if slot.entry.key != *key {
                continue;
            }
            has_others = true;
            let is_later = |other: u32| slot.entry.date_s() >= self.slots.get(other).entry.date_s();
            if answers(&slot.entry) && best.is_none_or(is_later) {
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

    /// The hashes of a response's tags, as an entry has them.
    pub fn tags_of(&self, fields: Fields<'_>) -> Box<[u64]> {
        let mut hashes: Vec<u64> = tags::tags(fields).map(tags::hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.into()
    }

    /// The hash of a tag, for [`Selector::Tags`].
    pub fn tag(&self, tag: &[u8]) -> u64 {
        tags::hash(tag)
    }

    /// Stores an entry in place of the one for the same requests. `began` is when it began to be
    /// made.
    ///
    /// # Errors
    /// It is too large, or was purged while it was made.
    pub fn insert(&mut self, entry: Entry, began: Stamp, now_s: u64) -> Result<Shared, Reason> {
        if self.purges.concerns(began.0, &entry) {
            return Err(Reason::PurgedMeanwhile);
        }
        // One entry shall not push out most of the others.
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

    /// Puts an entry in place of the one that it was made from, unless that is gone meanwhile.
    pub fn replace(&mut self, old: &Shared, new: Entry) -> Option<Shared> {
        let hash = self.hash(&old.key);
        let number =
            self.chain(hash).find(|&number| Shared::ptr_eq(&self.slots.get(number).entry, old))?;
        Some(self.put_in_place(number, new))
    }

    /// Purges what is selected; gives how many entries that were.
    pub fn purge(&mut self, selector: Selector, purge: Purge) -> usize {
        let selected = self.purge_index.selected(&selector);
        for &number in &selected {
            match purge {
                Purge::Hard => self.remove(number),
                Purge::Soft { now_s, grace_s } => {
                    let entry = self.slots.get(number).entry.expired(now_s, grace_s);
                    self.put_in_place(number, entry);
                }
            }
        }
        self.purges.note(self.purges.latest() + 1, selector);
        self.counts.purged += selected.len() as u64;
        selected.len()
    }

    /// Whether a purge since `began` was about this entry, or may have been.
    pub fn was_purged(&self, began: Stamp, entry: &Entry) -> bool {
        self.purges.concerns(began.0, entry)
    }

    /// All entries, in no order.
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

    fn put_in_place(&mut self, number: u32, entry: Entry) -> Shared {
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

    /// Gives the oldest of a queue another round in the main one if it was asked for, and throws
    /// it away otherwise.
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

/// Whether an entry can still answer anything by itself.
fn is_of_use(times: &Freshness, now_s: u64) -> bool {
    now_s == u64::MAX || times.useful_until_s() >= now_s
}

/// The index has hashes for keys.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys of the index are u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
