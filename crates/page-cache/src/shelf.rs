//! What lies on disk: everything about it but the bodies, and what has to go for want of room.
//!
//! Owned by the I/O thread, like the store. It knows files by number and touches none; whoever calls
//! it reads, writes and removes them. Invariants: at most one file for a key and variant; the files
//! take at most the budget after each call, once what was named for removal is removed.

use crate::entry::{Entry, Key, Shared};
use crate::purge::Selector;
use crate::purge_index::PurgeIndex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Shelf {
    budget_bytes: u64,
    used_bytes: u64,
    files: HashMap<u64, Shelved>,
    by_key: HashMap<Arc<[u8]>, Vec<u64>>,
    purge_index: PurgeIndex<u64>,
    /// Oldest first; numbers that are gone are passed over.
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct Shelved {
    /// Without head and bodies.
    entry: Shared,
    bytes: u64,
}

impl Shelf {
    /// An empty one.
    pub fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            used_bytes: 0,
            files: HashMap::new(),
            by_key: HashMap::new(),
            purge_index: PurgeIndex::default(),
            order: VecDeque::new(),
        }
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What they take, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Whether there is a file for the same requests that is no older.
    pub fn has(&self, entry: &Entry) -> bool {
        let is_no_older = |file| self.received_s(file) >= entry.times().received_s;
        self.same(entry).is_some_and(is_no_older)
    }

    /// Whether there is one that is newer.
    pub fn has_newer(&self, entry: &Entry) -> bool {
        let is_newer = |file| self.received_s(file) > entry.times().received_s;
        self.same(entry).is_some_and(is_newer)
    }

    fn received_s(&self, file: u64) -> u64 {
        self.files[&file].entry.times().received_s
    }

    /// Notes that a file has this entry; gives the files to be removed: that of before, and the
    /// oldest if there is no room. The file itself is among them if it is larger than the budget.
    pub fn put(&mut self, file: u64, entry: &Entry, bytes: u64) -> Vec<u64> {
        let mut gone = Vec::new();
        if let Some(old) = self.same(entry) {
            self.remove(old);
            gone.push(old);
        }
        let shelved = Shelved { entry: entry.without_bodies().into(), bytes };
        self.by_key.entry(entry.key().bytes.clone()).or_default().push(file);
        self.purge_index.add(entry, file);
        self.files.insert(file, shelved);
        self.order.push_back(file);
        self.used_bytes += bytes;
        while self.used_bytes > self.budget_bytes
            && let Some(oldest) = self.order.pop_front()
        {
            if self.remove(oldest) {
                gone.push(oldest);
            }
        }
        gone
    }

    /// The file under `key` for which `answers` holds; of several the latest.
    pub fn find(&self, key: &Key, mut answers: impl FnMut(&Entry) -> bool) -> Option<u64> {
        let files = self.by_key.get(key.bytes())?;
        files.iter().rev().copied().find(|file| answers(&self.files[file].entry))
    }

    /// Forgets a file; false if it is not known.
    pub fn remove(&mut self, file: u64) -> bool {
        let Some(shelved) = self.files.remove(&file) else { return false };
        self.used_bytes -= shelved.bytes;
        self.purge_index.remove(&shelved.entry, file);
        let key = shelved.entry.key().bytes();
        if let Some(files) = self.by_key.get_mut(key) {
            files.retain(|&other| other != file);
            if files.is_empty() {
                self.by_key.remove(key);
            }
        }
        // Most are the oldest when they go; the rest is passed over later, or swept here.
        if self.order.len() > 2 * self.files.len() + 64 {
            let files = &self.files;
            self.order.retain(|number| files.contains_key(number));
        }
        true
    }

    /// Forgets what is selected; gives the files.
    pub fn purge(&mut self, selector: &Selector) -> Vec<u64> {
        let selected = self.purge_index.selected(selector);
        for &file in &selected {
            self.remove(file);
        }
        selected
    }

    fn same(&self, entry: &Entry) -> Option<u64> {
        let files = self.by_key.get(entry.key().bytes())?;
        files.iter().copied().find(|file| self.files[file].entry.variant() == entry.variant())
    }
}
