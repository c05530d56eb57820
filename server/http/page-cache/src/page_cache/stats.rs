//! Counters and sizes of a page cache, of all shards.

use super::PageCache;
use crate::cache_status::CacheStatus;
use crate::disk_tier::DiskTier;
use outboard_admin_api::cache::AppStats;

impl PageCache {
    /// Counts a response.
    pub fn count(&self, status: CacheStatus) {
        self.shard.counts.add(status);
    }

    /// The number of responses by cache status.
    pub fn responses(&self) -> [(&'static str, u64); 4] {
        self.pages.responses()
    }

    /// Why this shard does not share its pages at the moment, if there is a shared tier.
    pub fn unshared_because(&self) -> Option<String> {
        self.shared.as_ref()?.unavailable_because()
    }

    /// For `outboard cache stats`.
    pub fn stats(&self) -> AppStats {
        let (disk_entries, disk_bytes) = self.disk().map_or((0, 0), DiskTier::size);
        let [(_, hit), (_, stale), (_, miss), (_, bypass)] = self.responses();
        let waiting = self.single_flight().waiting();
        let (shared, audit) =
            (self.shared.as_ref().map(|shared| shared.stats()), self.audit.stats());
        let memory = self.memory();
        let counts = memory.counts();
        AppStats {
            entries: memory.len(),
            used_bytes: memory.used_bytes(),
            max_bytes: memory.budget_bytes(),
            hit,
            stale,
            miss,
            bypass,
            waiting,
            stored: counts.stored,
            evicted: counts.evicted,
            purged: counts.purged,
            disk_entries: disk_entries as u64,
            disk_bytes,
            presets: self.settings().presets.iter().map(|&name| name.to_owned()).collect(),
            shared,
            audit,
        }
    }
}
