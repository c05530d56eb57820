//! The paths whose pages an audit of any shard has removed.
//!
//! Owned by the pages of a cache; each shard has a copy, which it asks at every lookup. Invariant: a
//! shard that has seen the number of the paths has a copy of all of them. As long as there are no new
//! ones, a lookup takes no lock and reads a number that is in the caches of all processors.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Paths that are removed at most; one more turns the app's cache off.
const REMOVED_MAX: usize = 1000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RemovedPaths {
    paths: Mutex<Vec<Vec<u8>>>,
    count: AtomicUsize,
    /// Examined pages; they are rare.
    pub(super) examined: AtomicU64,
}

/// The copy of a shard.
#[derive(Debug, Default)]
pub(super) struct RemovedHere {
    all: Arc<RemovedPaths>,
    known: RefCell<Vec<Vec<u8>>>,
}

impl RemovedPaths {
    /// Adds a path, unless the cache is off already.
    pub(super) fn add(&self, path: &[u8]) {
        let mut paths = self.paths();
        // Two shards may have found it at the same time.
        let is_new = paths.iter().all(|known| known != path);
        if is_new && paths.len() <= REMOVED_MAX {
            paths.push(path.to_vec());
            self.count.store(paths.len(), Ordering::Release);
        }
    }

    pub(super) fn paths(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemovedHere {
    pub(super) fn of(all: &Arc<RemovedPaths>) -> Self {
        Self { all: all.clone(), known: RefCell::default() }
    }

    pub(super) fn all(&self) -> &RemovedPaths {
        &self.all
    }

    /// Whether a path is among them.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        let count = self.all.count.load(Ordering::Acquire);
        if count == 0 {
            return false;
        }
        let mut known = self.known.borrow_mut();
        if known.len() != count {
            known.clone_from(&self.all.paths());
        }
        known.len() > REMOVED_MAX || known.iter().any(|removed| removed == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_removed_for_all_shards() {
        let all = Arc::new(RemovedPaths::default());
        let shards = [RemovedHere::of(&all), RemovedHere::of(&all)];
        assert!(!shards[1].has(b"/a"));
        shards[0].all().add(b"/a");
        for shard in &shards {
            assert!(shard.has(b"/a") && !shard.has(b"/b"));
        }
        for number in 0..2 * REMOVED_MAX {
            shards[1].all().add(number.to_string().as_bytes());
        }
        assert!(shards[0].has(b"/b"), "the cache is off");
        assert_eq!(all.paths().len(), REMOVED_MAX + 1);
    }
}
