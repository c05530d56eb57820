//! Counters and sizes of a page cache.

use super::PageCache;
use crate::cache_status::CacheStatus;
use crate::disk_tier::DiskTier;
use outboard_admin_api::cache::AppStats;
use std::cell::Cell;

/// Responses by cache status, since the generation started.
#[derive(Debug, Default)]
pub(super) struct StatusCounts {
    hit: Cell<u64>,
    stale: Cell<u64>,
    miss: Cell<u64>,
    bypass: Cell<u64>,
}

impl PageCache {
    /// Counts a response.
    pub fn count(&self, status: CacheStatus) {
        let count = match status.word() {
            "HIT" => &self.counts.hit,
            "STALE" => &self.counts.stale,
            "MISS" => &self.counts.miss,
            _ => &self.counts.bypass,
        };
        count.set(count.get() + 1);
    }

    /// The number of responses by cache status.
    pub fn responses(&self) -> [(&'static str, u64); 4] {
        let StatusCounts { hit, stale, miss, bypass } = &self.counts;
        [("hit", hit.get()), ("stale", stale.get()), ("miss", miss.get()), ("bypass", bypass.get())]
    }

    /// Why pages are not shared at the moment, if there is a shared tier.
    pub fn unshared_because(&self) -> Option<String> {
        self.shared.as_ref()?.unavailable_because()
    }

    /// For `outboard cache stats`.
    pub fn stats(&self) -> AppStats {
        let store = self.memory();
        let counts = store.counts();
        let (disk_entries, disk_bytes) = self.disk.as_ref().map_or((0, 0), DiskTier::size);
        AppStats {
            entries: store.len(),
            used_bytes: store.used_bytes(),
            max_bytes: store.budget_bytes(),
            hit: self.counts.hit.get(),
            stale: self.counts.stale.get(),
            miss: self.counts.miss.get(),
            bypass: self.counts.bypass.get(),
            waiting: self.single_flight.waiting(),
            stored: counts.stored,
            evicted: counts.evicted,
            purged: counts.purged,
            disk_entries: disk_entries as u64,
            disk_bytes,
            presets: self.settings.presets.iter().map(|&name| name.to_owned()).collect(),
            shared: self.shared.as_ref().map(|shared| shared.stats()),
            audit: self.audit.stats(),
        }
    }
}
