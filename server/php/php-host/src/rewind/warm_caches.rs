//! [`WarmCaches`]: what requests fill the caches of the process with, and what of it a worker keeps.
//!
//! Filled by `sapi/rewind/warm_caches.c` at the end of each request. Invariants: an entry is kept only if several requests
//! have used it, so none that was made of one visitor's input; their number, their length and what they take are
//! limited; and after a few rounds a worker learns no more.

use std::collections::BTreeMap;

/// After so many requests the entries seen until then are kept: at first those of every page, later those of
/// rarer ones.
const ROUNDS: [u32; 3] = [8, 64, 512];

/// Of the requests of a round, so many must have used an entry.
const REQUESTS_MIN: u32 = 2;

/// After so many their pages are added to the snapshot, before the next ones.
const BATCH: usize = 32;

const ENTRIES_MAX: usize = 512;
const KEY_BYTES_MAX: usize = 4096;

/// What brings an entry into a cache again.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// `outboard_cache` of `sapi/rewind/rewind.h`.
    pub(crate) cache: u8,
    /// Two texts, which C reads: the first ends at its NUL, the second with the key, whose last byte is a NUL that
    /// belongs to neither.
    pub(crate) key: Box<[u8]>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct WarmCaches {
    /// How many requests have used an entry that the cache did not have.
    seen: BTreeMap<Entry, u32>,
    due: Vec<Entry>,
    /// The entry that was handed out last, which C still reads.
    taken: Entry,
    in_batch: usize,
    kept: usize,
    requests: u32,
    rounds: usize,
}

impl Entry {
    pub(crate) fn new(cache: u8, first: &[u8], second: &[u8]) -> Self {
        Self { cache, key: [first, b"\0", second, b"\0"].concat().into() }
    }
}

impl WarmCaches {
    /// Whether it is of use to note what a request has used.
    pub(super) fn is_learning(&self) -> bool {
        self.rounds < ROUNDS.len()
    }

    /// The present request has used this, which the cache did not have.
    pub(super) fn note(&mut self, entry: Entry) {
        if let Some(requests) = self.seen.get_mut(&entry) {
            *requests += 1;
        } else if entry.key.len() <= KEY_BYTES_MAX && self.seen.len() < ENTRIES_MAX {
            self.seen.insert(entry, 1);
        }
    }

    /// The present request has ended.
    pub(super) fn end_request(&mut self) {
        if !self.is_learning() {
            return;
        }
        self.requests += 1;
        if self.requests < ROUNDS[self.rounds] {
            return;
        }
        self.rounds += 1;
        let seen = std::mem::take(&mut self.seen).into_iter();
        let several = seen.filter(|(_, requests)| *requests >= REQUESTS_MIN);
        self.due = several.map(|(entry, _)| entry).take(ENTRIES_MAX - self.kept).collect();
        self.kept += self.due.len();
    }

    /// The next entry of a batch; it stays where it is until the next call.
    pub(super) fn next(&mut self) -> Option<&Entry> {
        if self.in_batch == BATCH {
            self.in_batch = 0;
            return None;
        }
        self.taken = self.due.pop()?;
        self.in_batch += 1;
        Some(&self.taken)
    }

    /// Keeps no more: those that it has take enough memory.
    pub(super) fn stop(&mut self) {
        *self = Self { rounds: ROUNDS.len(), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_requests(caches: &mut WarmCaches, count: u32, used: &[&str]) {
        for _ in 0..count {
            used.iter().for_each(|pattern| caches.note(Entry::new(0, b"", pattern.as_bytes())));
            caches.end_request();
        }
    }

    fn batch(caches: &mut WarmCaches) -> Vec<String> {
        let text = |entry: &Entry| String::from_utf8(entry.key.to_vec()).unwrap();
        let taken = std::iter::from_fn(|| caches.next().map(text));
        taken.map(|text| text.trim_matches('\0').to_owned()).collect()
    }

    fn due(caches: &mut WarmCaches) -> Vec<String> {
        let batches = std::iter::from_fn(|| Some(batch(caches)).filter(|some| !some.is_empty()));
        batches.flatten().collect()
    }

    #[test]
    fn what_several_requests_have_used_is_kept_after_a_round() {
        let mut caches = WarmCaches::default();
        end_requests(&mut caches, 1, &["/visitor/"]);
        end_requests(&mut caches, 6, &["/a/", "/b/"]);
        assert_eq!(due(&mut caches), [""; 0]);
        end_requests(&mut caches, 1, &["/a/"]);
        assert_eq!(due(&mut caches), ["/b/", "/a/"]);
        assert_eq!(due(&mut caches), [""; 0]);
        end_requests(&mut caches, 56, &["/c/"]);
        assert_eq!(due(&mut caches), ["/c/"]);
    }

    #[test]
    fn after_the_last_round_nothing_is_learned() {
        let mut caches = WarmCaches::default();
        end_requests(&mut caches, 511, &[]);
        assert!(caches.is_learning());
        end_requests(&mut caches, 1, &["/a/"]);
        assert!(!caches.is_learning());
        end_requests(&mut caches, 5000, &["/a/"]);
        assert_eq!(due(&mut caches), [""; 0]);
    }

    #[test]
    fn nothing_is_kept_once_that_is_enough() {
        let mut caches = WarmCaches::default();
        end_requests(&mut caches, 8, &["/a/", "/b/"]);
        assert!(caches.next().is_some());
        caches.stop();
        assert!(caches.next().is_none() && !caches.is_learning());
    }

    #[test]
    fn entries_are_limited_in_number_and_length() {
        let mut caches = WarmCaches::default();
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        let many: Vec<String> = (0..2 * ENTRIES_MAX).map(|number| format!("/{number}/")).collect();
        let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
        many.insert(0, &long);
        end_requests(&mut caches, 8, &many);
        assert_eq!(batch(&mut caches).len(), BATCH);
        assert_eq!(due(&mut caches).len(), ENTRIES_MAX - BATCH);
        end_requests(&mut caches, 56, &many);
        assert_eq!(due(&mut caches).len(), 0);
    }
}
