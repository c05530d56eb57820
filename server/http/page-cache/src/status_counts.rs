//! Responses of one shard by cache status, since the generation started.
//!
//! Counted by the shard's [`crate::PageCache`] and read by all: the sum over the shards is shown.
//! Invariant: only its shard writes, and nothing else is in its cache lines, so that a hit neither
//! waits for another shard's nor costs more than on a single shard.

use crate::cache_status::CacheStatus;
use std::sync::atomic::{AtomicU64, Ordering};

/// The names of the counts.
const NAMES: [&str; 4] = ["hit", "stale", "miss", "bypass"];

/// See the module. Processors fetch cache lines of 64 bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StatusCounts([AtomicU64; 4]);

/// The number of responses by cache status.
pub(crate) type Responses = [(&'static str, u64); 4];

impl StatusCounts {
    /// Counts a response.
    pub(crate) fn add(&self, status: CacheStatus) {
        let place = match status.word() {
            "HIT" => 0,
            "STALE" => 1,
            "MISS" => 2,
            _ => 3,
        };
        let count = &self.0[place];
        // Without a locked instruction: nobody else writes.
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The sum over shards.
    pub(crate) fn sum<'a>(shards: impl Iterator<Item = &'a Self>) -> Responses {
        let mut sums = NAMES.map(|name| (name, 0));
        for shard in shards {
            for ((_, sum), count) in sums.iter_mut().zip(&shard.0) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Reason;

    #[test]
    fn the_sum_has_the_responses_of_all_shards() {
        let shards = [StatusCounts::default(), StatusCounts::default()];
        shards[0].add(CacheStatus::Hit { remaining_s: 1 });
        shards[1].add(CacheStatus::Hit { remaining_s: 1 });
        shards[1].add(CacheStatus::Bypass(Reason::Method));
        let expected = [("hit", 2), ("stale", 0), ("miss", 0), ("bypass", 1)];
        assert_eq!(StatusCounts::sum(shards.iter()), expected);
    }
}
