//! Recent purges, and whether one of them selected an entry.
//!
//! Queried by the store for renderings that were under way during a purge, and by the shared cache
//! tier. The owner numbers purges in ascending order; of several equal selectors only the latest is
//! retained, so a query costs the same after a thousand purges as after one. Invariant: an entry that a
//! forgotten purge may have selected counts as purged.

use crate::entry::Entry;
use crate::purge::Selector;
use std::collections::HashMap;

/// The most purges that are retained; beyond, the older half is forgotten.
const RETAINED_MAX: usize = 4096;

/// The latest purges by what they selected.
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
    /// A log without the purges up to `floor`.
    pub fn since(floor: u64) -> Self {
        Self { latest: floor, floor, ..Self::default() }
    }

    /// The number of the latest purge.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Records a purge; numbers ascend.
    pub fn note(&mut self, number: u64, selector: Selector) {
        self.latest = number;
        match selector {
            Selector::All => self.all = number,
            Selector::Url(url) => drop(self.urls.insert(url, number)),
            Selector::Prefix(prefix) => drop(self.prefixes.insert(prefix, number)),
            Selector::Tags(tags) => self.tags.extend(tags.into_iter().map(|tag| (tag, number))),
        }
        if self.len() > RETAINED_MAX {
            self.forget_older_half();
        }
    }

    /// Whether a purge after number `since` selected this entry, or may have.
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
