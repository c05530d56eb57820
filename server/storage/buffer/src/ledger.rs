//! [`Ledger`]: what the accounts of all shards for the same purpose have in common.
//!
//! Each [`crate::Account`] leases its bytes from one. An account below that of all shards has a ledger that
//! is found by its name; one that belongs to a shard, such as that of a connection, has its own. Invariant:
//! a ledger exists as long as an account of it.

use crate::lease::{Lease, Quota};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A shard takes so many bytes at once, at most.
const LARGEST_PIECE_BYTES: usize = 256 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Ledger {
    quota: Arc<Quota>,
    peak_bytes: AtomicUsize,
    /// The peak since it was last taken.
    recent_peak_bytes: AtomicUsize,
    refused: AtomicU64,
    root: Arc<Root>,
    /// The share of the root's limit.
    eighths: usize,
    below: Mutex<Vec<(Box<str>, Weak<Ledger>)>>,
}

/// What all ledgers of a tree share.
#[derive(Debug)]
struct Root {
    limit_bytes: AtomicUsize,
    shards: usize,
}

impl Ledger {
    /// The ledger of everything, for so many shards.
    pub(crate) fn root(shards: usize, limit_bytes: usize) -> Arc<Self> {
        let limit_bytes = AtomicUsize::new(limit_bytes);
        Self::new(Arc::new(Root { limit_bytes, shards }), shards, 8)
    }

    /// A ledger for one shard only.
    pub(crate) fn of_shard(&self, eighths: usize) -> Arc<Self> {
        Self::new(self.root.clone(), 1, eighths)
    }

    /// The ledger of this name below this one, for all shards.
    pub(crate) fn named(&self, name: &str, eighths: usize) -> Arc<Self> {
        let mut below = self.below.lock().unwrap_or_else(PoisonError::into_inner);
        below.retain(|(_, ledger)| ledger.strong_count() > 0);
        let known = below.iter().find(|(known, _)| **known == *name);
        known.and_then(|(_, ledger)| ledger.upgrade()).unwrap_or_else(|| {
            let new = Self::new(self.root.clone(), self.root.shards, eighths);
            below.push((name.into(), Arc::downgrade(&new)));
            new
        })
    }

    fn new(root: Arc<Root>, shards: usize, eighths: usize) -> Arc<Self> {
        Arc::new(Self {
            quota: Quota::new(shards, LARGEST_PIECE_BYTES),
            peak_bytes: AtomicUsize::new(0),
            recent_peak_bytes: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            root,
            eighths,
            below: Mutex::default(),
        })
    }

    /// A lease of nothing.
    pub(crate) fn lease(&self) -> Lease {
        Lease::new(&self.quota)
    }

    pub(crate) fn set_root_limit(&self, bytes: usize) {
        self.root.limit_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The limit of all shards together.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.root.limit_bytes.load(Ordering::Relaxed) / 8 * self.eighths
    }

    /// Notes how many bytes all shards hold. A lower number than the last peak writes nothing.
    pub(crate) fn note(&self, held_bytes: usize) {
        if held_bytes > self.recent_peak_bytes.load(Ordering::Relaxed) {
            self.recent_peak_bytes.fetch_max(held_bytes, Ordering::Relaxed);
            self.peak_bytes.fetch_max(held_bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// The peak since the last call; the next one begins at `held_bytes`.
    pub(crate) fn take_recent_peak_bytes(&self, held_bytes: usize) -> usize {
        self.recent_peak_bytes.swap(held_bytes, Ordering::Relaxed)
    }

    /// Counts a refusal.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}
