//! The index of the entries on disk: everything but their bodies, and the order of eviction.
//!
//! Owned by the disk tier of a cache, under its lock. It knows files by number; its caller reads, writes and
//! removes them. Invariants: at most one file for a key and variant; the files take at most the budget
//! after each call, once its caller has removed the files that were returned for removal.

use crate::entry::Entry;
use crate::key::Key;
use crate::purge::Selector;
use crate::purge_index::PurgeIndex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The entries on disk within a budget of bytes.
#[derive(Debug)]
pub struct DiskIndex {
    budget_bytes: u64,
    used_bytes: u64,
    files: HashMap<u64, DiskEntry>,
    by_key: HashMap<Arc<[u8]>, Vec<u64>>,
    purge_index: PurgeIndex<u64>,
    /// Oldest first; removed numbers are skipped.
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct DiskEntry {
    /// Without head and bodies.
    entry: Entry,
    bytes: u64,
}

impl DiskIndex {
    /// An empty index.
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

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The size of all files, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Whether a file for the same requests is at least as recent.
    pub fn has(&self, entry: &Entry) -> bool {
        let is_no_older = |file| self.received_s(file) >= entry.times().received_s;
        self.same(entry).is_some_and(is_no_older)
    }

    /// Whether a file for the same requests is more recent.
    pub fn has_newer(&self, entry: &Entry) -> bool {
        let is_newer = |file| self.received_s(file) > entry.times().received_s;
        self.same(entry).is_some_and(is_newer)
    }

    fn received_s(&self, file: u64) -> u64 {
        self.files[&file].entry.times().received_s
    }

    /// Records that a file contains this entry. Returns the files to remove: the replaced one, and the
    /// oldest ones if there is no room. The file itself is among them if it is larger than the budget.
    pub fn insert(&mut self, file: u64, entry: &Entry, bytes: u64) -> Vec<u64> {
        let mut evicted = Vec::new();
        if let Some(old) = self.same(entry) {
            self.remove(old);
            evicted.push(old);
        }
        let stored = DiskEntry { entry: entry.without_bodies(), bytes };
        self.by_key.entry(entry.key().bytes.clone()).or_default().push(file);
        self.purge_index.add(entry, file);
        self.files.insert(file, stored);
        self.order.push_back(file);
        self.used_bytes += bytes;
        while self.used_bytes > self.budget_bytes
            && let Some(oldest) = self.order.pop_front()
        {
            if self.remove(oldest) {
                evicted.push(oldest);
            }
        }
        evicted
    }

    /// The file under `key` for which `matches` holds; of several the latest.
    pub fn find(&self, key: &Key, mut matches: impl FnMut(&Entry) -> bool) -> Option<u64> {
        let files = self.by_key.get(key.bytes())?;
        files.iter().rev().copied().find(|file| matches(&self.files[file].entry))
    }

    /// Whether a file is in the index.
    pub fn contains(&self, file: u64) -> bool {
        self.files.contains_key(&file)
    }

    /// Removes a file from the index; false if it is unknown.
    pub fn remove(&mut self, file: u64) -> bool {
        let Some(stored) = self.files.remove(&file) else { return false };
        self.used_bytes -= stored.bytes;
        self.purge_index.remove(&stored.entry, file);
        let key = stored.entry.key().bytes();
        if let Some(files) = self.by_key.get_mut(key) {
            files.retain(|&other| other != file);
            if files.is_empty() {
                self.by_key.remove(key);
            }
        }
        // Most removals are of the oldest; the others are skipped later, or swept here.
        if self.order.len() > 2 * self.files.len() + 64 {
            let files = &self.files;
            self.order.retain(|number| files.contains_key(number));
        }
        true
    }

    /// Removes the selected files from the index and returns them.
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
