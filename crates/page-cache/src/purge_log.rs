//! The memory of recent purges: whether one of them was about an entry.
//!
//! Asked by the store for answers that were under way, and by whoever keeps entries among several
//! servers. Purges are numbered by their owner, upwards; only the latest of several that select the
//! same is remembered, so that asking takes as long for a thousand as for one. Invariant: what a
//! forgotten purge may have been about counts as purged.

use crate::entry::Entry;
use crate::purge::Selector;
use std::collections::HashMap;

/// How many different purges are remembered; beyond, the older half is forgotten.
const REMEMBERED: usize = 4096;

/// The latest purges, by what they were about.
#[derive(Debug, Default)]
pub struct PurgeLog {
    latest: u64,
    /// Purges up to this one may be forgotten.
    floor: u64,
    all: u64,
    urls: HashMap<Vec<u8>, u64>,
    prefixes: HashMap<Vec<u8>, u64>,
    tags: HashMap<u64, u64>,
}

impl PurgeLog {
    /// One that knows nothing of the purges up to `floor`.
    pub fn since(floor: u64) -> Self {
        Self { latest: floor, floor, ..Self::default() }
    }

    /// The number of the latest purge.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Notes a purge; its number is larger than those before.
    pub fn note(&mut self, number: u64, selector: Selector) {
        self.latest = number;
        match selector {
            Selector::All => self.all = number,
            Selector::Url(url) => drop(self.urls.insert(url, number)),
            Selector::Prefix(prefix) => drop(self.prefixes.insert(prefix, number)),
            Selector::Tags(tags) => self.tags.extend(tags.into_iter().map(|tag| (tag, number))),
        }
        if self.len() > REMEMBERED {
            self.forget_older_half();
        }
    }

    /// Whether a purge after that with the number `since` was about this entry, or may have been.
    pub fn concerns(&self, since: u64, entry: &Entry) -> bool {
        let is_later = |number: Option<&u64>| number.is_some_and(|&number| number > since);
        let (url, path) = (entry.key.bytes(), entry.key.path_and_query());
        let mut prefixes = self.prefixes.iter().filter(|(_, number)| **number > since);
        since < self.floor
            || self.all > since
            || is_later(self.urls.get(url))
            || is_later(self.urls.get(path))
            || entry.tags.iter().any(|tag| is_later(self.tags.get(tag)))
            || prefixes.any(|(prefix, _)| url.starts_with(prefix) || path.starts_with(prefix))
    }

    fn len(&self) -> usize {
        self.urls.len() + self.prefixes.len() + self.tags.len()
    }

    fn forget_older_half(&mut self) {
        let numbers = self.urls.values().chain(self.prefixes.values()).chain(self.tags.values());
        let mut numbers: Vec<u64> = numbers.copied().collect();
        let middle = numbers.len() / 2;
        let floor = *numbers.select_nth_unstable(middle).1;
        self.urls.retain(|_, number| *number > floor);
        self.prefixes.retain(|_, number| *number > floor);
        self.tags.retain(|_, number| *number > floor);
        self.floor = floor;
    }
}
