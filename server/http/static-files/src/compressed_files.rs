//! [`CompressedFiles`]: files of an app that were compressed on demand, in memory.
//!
//! Shared by all threads that serve the app: asked by [`crate::variants`] for a file that a thread does not
//! know yet, filled by [`crate::Uncompressed`]. Invariants: what is kept, and what responses under way still
//! send of what was removed, is at most `max_bytes`; no file is compressed twice at a time; the lock is
//! held for a look into a table, never while a file is read or compressed.
//!
//! A full memory removes a file that was not requested recently (second chance, as [`crate::cache`]), so
//! that a flood of files that are requested once does not remove those in use.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outboard_http_semantics::Coding;

use crate::stamp::Stamp;

/// A shorter file gains nothing, because it fits one packet either way.
const FILE_MIN_BYTES: u64 = 1024;
/// Several files have room, however large they are.
const FILES_MIN: u64 = 4;
/// What a kept file takes besides its bytes: its places in the tables.
const SLOT_BYTES: usize = 256;

/// Equal keys mean equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) stamp: Stamp,
    pub(crate) coding: Coding,
}

/// See the module.
#[derive(Debug)]
pub struct CompressedFiles {
    max_bytes: usize,
    held_bytes: Arc<AtomicUsize>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    index: HashMap<Key, usize>,
    slots: Vec<Slot>,
    hand: usize,
    under_way: HashSet<Key>,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    file: Arc<CompressedFile>,
}

/// The bytes of a file in a coding; none if the coding does not make it smaller.
#[derive(Debug)]
pub struct CompressedFile {
    bytes: Box<[u8]>,
    /// Requested since the hand last passed.
    is_used: AtomicBool,
    held_bytes: Arc<AtomicUsize>,
}

impl CompressedFile {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Notes a request for the file.
    pub(crate) fn mark_as_used(&self) {
        // A write of what is there already would take the cache line from the other threads.
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for CompressedFile {
    fn drop(&mut self) {
        self.held_bytes.fetch_sub(SLOT_BYTES + self.bytes.len(), Ordering::Relaxed);
    }
}

impl CompressedFiles {
    /// Keeps files of `max_bytes` together, with their places in the tables.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, held_bytes: Arc::default(), state: Mutex::default() }
    }

    /// Whether a file of this size is worth the work, and has room.
    pub(crate) fn admits(&self, size: u64) -> bool {
        (FILE_MIN_BYTES..=self.max_bytes as u64 / FILES_MIN).contains(&size)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<CompressedFile>> {
        let state = self.lock();
        state.index.get(key).map(|&index| Arc::clone(&state.slots[index].file))
    }

    /// Takes on the compression of a file; `None` if it is kept or another has taken it on.
    pub(crate) fn claim(self: &Arc<Self>, key: Key) -> Option<Claim> {
        let mut state = self.lock();
        let is_new = !state.index.contains_key(&key) && state.under_way.insert(key);
        is_new.then(|| Claim { files: Arc::clone(self), key })
    }

    fn keep(&self, key: Key, bytes: Box<[u8]>) {
        let needed = SLOT_BYTES + bytes.len();
        let mut state = self.lock();
        while self.held_bytes.load(Ordering::Relaxed) + needed > self.max_bytes {
            // All that is left is being sent.
            if !state.remove_one() {
                return;
            }
        }
        self.held_bytes.fetch_add(needed, Ordering::Relaxed);
        let (is_used, held_bytes) = (AtomicBool::new(false), Arc::clone(&self.held_bytes));
        let file = Arc::new(CompressedFile { bytes, is_used, held_bytes });
        let index = state.slots.len();
        state.slots.push(Slot { key, file });
        state.index.insert(key, index);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Removes a file that was not requested recently; false if responses send all of them.
    fn remove_one(&mut self) -> bool {
        // The first round clears every mark.
        for _ in 0..2 * self.slots.len() {
            self.hand %= self.slots.len();
            let file = &self.slots[self.hand].file;
            if file.is_used.swap(false, Ordering::Relaxed) || Arc::strong_count(file) > 1 {
                self.hand += 1;
                continue;
            }
            let removed = self.slots.swap_remove(self.hand);
            self.index.remove(&removed.key);
            if let Some(moved) = self.slots.get(self.hand) {
                self.index.insert(moved.key, self.hand);
            }
            return true;
        }
        false
    }
}

/// A compression under way; without an outcome, the file may be taken on again.
#[derive(Debug)]
pub(crate) struct Claim {
    files: Arc<CompressedFiles>,
    pub(crate) key: Key,
}

impl Claim {
    /// Keeps the outcome; empty if the coding does not make the file smaller.
    pub(crate) fn keep(self, bytes: Box<[u8]>) {
        self.files.keep(self.key, bytes);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.files.lock().under_way.remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
