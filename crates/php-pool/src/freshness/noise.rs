//! [`Noise`]: files that change all the time, because the application itself writes them.
//!
//! Asked for each changed file. Invariant: such a file does not retire snapshots for a while; every other does.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A file that changes so often within [`INTERVAL_MS`] is ignored.
const CHANGES_MAX: u32 = 20;
const INTERVAL_MS: u64 = 60_000;
/// For so long.
const IGNORED_MS: u64 = 600_000;
/// Beyond this number the oldest are forgotten.
const FILES_MAX: usize = 1_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Noise {
    files: HashMap<PathBuf, Changes>,
    /// Files that were ignored and not reported yet.
    news: Vec<PathBuf>,
}

#[derive(Debug)]
struct Changes {
    since_ms: u64,
    count: u32,
}

impl Noise {
    /// Whether a change of the file counts.
    pub(super) fn admits(&mut self, path: &Path, now_ms: u64) -> bool {
        if self.files.len() >= FILES_MAX {
            self.files.retain(|_, known| now_ms.saturating_sub(known.since_ms) < INTERVAL_MS);
        }
        if self.files.len() >= FILES_MAX {
            self.files.clear();
        }
        let fresh = Changes { since_ms: now_ms, count: 0 };
        let known = self.files.entry(path.to_owned()).or_insert(fresh);
        let is_ignored = known.count > CHANGES_MAX;
        let lasts_ms = if is_ignored { IGNORED_MS } else { INTERVAL_MS };
        if now_ms.saturating_sub(known.since_ms) >= lasts_ms {
            *known = Changes { since_ms: now_ms, count: 0 };
        } else if is_ignored {
            return false;
        }
        known.count += 1;
        if known.count > CHANGES_MAX {
            known.since_ms = now_ms;
            self.news.push(path.to_owned());
            return false;
        }
        true
    }

    /// Whether changes of the file do not count.
    pub(super) fn ignores(&self, path: &Path, now_ms: u64) -> bool {
        let is_ignored = |known: &Changes| {
            known.count > CHANGES_MAX && now_ms.saturating_sub(known.since_ms) < IGNORED_MS
        };
        self.files.get(path).is_some_and(is_ignored)
    }

    /// When the first file is ignored no longer.
    pub(super) fn ends_ms(&self) -> Option<u64> {
        let ignored = self.files.values().filter(|known| known.count > CHANGES_MAX);
        ignored.map(|known| known.since_ms + IGNORED_MS).min()
    }

    /// The files that are ignored no longer. They may have changed meanwhile.
    pub(super) fn take_ended(&mut self, now_ms: u64) -> Vec<PathBuf> {
        let is_ended = |_: &PathBuf, known: &mut Changes| {
            known.count > CHANGES_MAX && now_ms.saturating_sub(known.since_ms) >= IGNORED_MS
        };
        self.files.extract_if(is_ended).map(|(path, _)| path).collect()
    }

    /// Whether there are such.
    pub(super) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Files that are ignored from now on.
    pub(super) fn take_news(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_all_the_time_is_ignored_for_a_while() {
        let (mut noise, busy, other) = (Noise::default(), Path::new("/a"), Path::new("/b"));
        for at_ms in 0..u64::from(CHANGES_MAX) {
            assert!(noise.admits(busy, at_ms));
        }
        assert!(!noise.admits(busy, 20) && !noise.admits(busy, INTERVAL_MS * 2));
        assert_eq!(noise.take_news(), [busy]);
        let ends_ms = noise.ends_ms().unwrap();
        assert!(noise.take_ended(ends_ms - 1).is_empty());
        assert_eq!(noise.take_ended(ends_ms), [busy]);
        assert_eq!(noise.ends_ms(), None);
        assert!(noise.admits(other, 20));
        assert!(noise.admits(busy, 20 + IGNORED_MS));
        assert!(noise.take_news().is_empty());
    }

    #[test]
    fn a_file_that_changes_now_and_then_always_counts() {
        let mut noise = Noise::default();
        for number in 0..100 {
            assert!(noise.admits(Path::new("/a"), number * INTERVAL_MS / 5));
        }
    }

    #[test]
    fn the_number_of_known_files_is_limited() {
        let mut noise = Noise::default();
        for number in 0..3 * FILES_MAX {
            assert!(noise.admits(Path::new(&format!("/{number}")), 1));
        }
        assert!(noise.files.len() <= FILES_MAX);
    }
}
