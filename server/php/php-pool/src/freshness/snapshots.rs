//! [`Snapshots`]: all snapshots of an app, of which a retirement may concern several.
//!
//! Shared by all threads. The state of each is added when it is made; one that is not used any more is forgotten.

use super::{Cause, Freshness};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// See the module.
#[derive(Debug, Default)]
pub struct Snapshots(Mutex<Vec<Weak<Freshness>>>);

impl Snapshots {
    /// Adds a snapshot.
    pub fn add(&self, freshness: &Arc<Freshness>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(freshness));
    }

    /// Retires all that depend on the key, or all; returns how many. A request that begins after this needs new
    /// ones.
    pub fn retire(&self, key: Option<&str>, cause: &Cause) -> usize {
        let all: Vec<_> = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        all.iter().filter(|freshness| freshness.retire(key, cause.clone())).count()
    }
}
