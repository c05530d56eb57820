//! [`Patterns`]: the regular expressions that requests have compiled, and which of them a worker keeps.
//!
//! Filled by `sapi/regex_cache.c` at the end of each request. Invariants: a pattern is kept only if several requests
//! have compiled it, so none that was made of one visitor's input; their number, their length and what they take
//! compiled are limited; and after a few rounds a worker learns no more.

use std::collections::BTreeMap;

/// After so many requests the patterns seen until then are kept: at first those of every page, later those of
/// rarer ones.
const ROUNDS: [u32; 3] = [8, 64, 512];

/// Of the requests of a round, so many must have compiled a pattern.
const REQUESTS_MIN: u32 = 2;

/// After so many their pages are added to the snapshot, before the next ones.
const BATCH: usize = 32;

const PATTERNS_MAX: usize = 512;
const PATTERN_BYTES_MAX: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// How many requests have compiled it in vain.
    seen: BTreeMap<Box<[u8]>, u32>,
    due: Vec<Box<[u8]>>,
    /// The pattern that was handed out last, which C still reads.
    taken: Box<[u8]>,
    in_batch: usize,
    kept: usize,
    requests: u32,
    rounds: usize,
}

impl Patterns {
    /// Whether it is of use to note what a request has compiled.
    pub(super) fn is_learning(&self) -> bool {
        self.rounds < ROUNDS.len()
    }

    /// The present request has compiled this.
    pub(super) fn note(&mut self, pattern: &[u8]) {
        if let Some(requests) = self.seen.get_mut(pattern) {
            *requests += 1;
        } else if pattern.len() <= PATTERN_BYTES_MAX && self.seen.len() < PATTERNS_MAX {
            self.seen.insert(pattern.into(), 1);
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
        self.due = several.map(|(pattern, _)| pattern).take(PATTERNS_MAX - self.kept).collect();
        self.kept += self.due.len();
    }

    /// The next pattern of a batch; it stays where it is until the next call.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
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

    fn end_requests(patterns: &mut Patterns, count: u32, compiled: &[&str]) {
        for _ in 0..count {
            compiled.iter().for_each(|pattern| patterns.note(pattern.as_bytes()));
            patterns.end_request();
        }
    }

    fn batch(patterns: &mut Patterns) -> Vec<String> {
        std::iter::from_fn(|| Some(String::from_utf8(patterns.next()?.to_vec()).unwrap())).collect()
    }

    fn due(patterns: &mut Patterns) -> Vec<String> {
        let batches = std::iter::from_fn(|| Some(batch(patterns)).filter(|some| !some.is_empty()));
        batches.flatten().collect()
    }

    #[test]
    fn what_several_requests_have_compiled_is_kept_after_a_round() {
        let mut patterns = Patterns::default();
        end_requests(&mut patterns, 1, &["/visitor/"]);
        end_requests(&mut patterns, 6, &["/a/", "/b/"]);
        assert_eq!(due(&mut patterns), [""; 0]);
        end_requests(&mut patterns, 1, &["/a/"]);
        assert_eq!(due(&mut patterns), ["/b/", "/a/"]);
        assert_eq!(due(&mut patterns), [""; 0]);
        end_requests(&mut patterns, 56, &["/c/"]);
        assert_eq!(due(&mut patterns), ["/c/"]);
    }

    #[test]
    fn after_the_last_round_nothing_is_learned() {
        let mut patterns = Patterns::default();
        end_requests(&mut patterns, 511, &[]);
        assert!(patterns.is_learning());
        end_requests(&mut patterns, 1, &["/a/"]);
        assert!(!patterns.is_learning());
        end_requests(&mut patterns, 5000, &["/a/"]);
        assert_eq!(due(&mut patterns), [""; 0]);
    }

    #[test]
    fn nothing_is_kept_once_that_is_enough() {
        let mut patterns = Patterns::default();
        end_requests(&mut patterns, 8, &["/a/", "/b/"]);
        assert!(patterns.next().is_some());
        patterns.stop();
        assert!(patterns.next().is_none() && !patterns.is_learning());
    }

    #[test]
    fn patterns_are_limited_in_number_and_length() {
        let mut patterns = Patterns::default();
        let long = "x".repeat(PATTERN_BYTES_MAX + 1);
        let many: Vec<String> = (0..2 * PATTERNS_MAX).map(|number| format!("/{number}/")).collect();
        let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
        many.insert(0, &long);
        end_requests(&mut patterns, 8, &many);
        assert_eq!(batch(&mut patterns).len(), BATCH);
        assert_eq!(due(&mut patterns).len(), PATTERNS_MAX - BATCH);
        end_requests(&mut patterns, 56, &many);
        assert_eq!(due(&mut patterns).len(), 0);
    }
}
