//! What a gateway knows about the purges of all gateways.
//!
//! One for all shards of a cache, whose connections each receive every purge: the first one that
//! receives a purge applies it, under the lock here, and the others find it applied. Invariants: the log
//! has every purge up to its latest one, or counts all older entries as purged; a purge is in the log
//! once it is in effect in memory and on disk. A connection belongs to the epoch that it has joined, and
//! calls with another one change nothing: the connection has to join again.

use super::LocalTiers;
use super::message::Message;
use crate::entry::Entry;
use crate::purge::Selector;
use crate::purge_log::PurgeLog;
use crate::store::PurgeEpoch;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug)]
pub(crate) struct KnownPurges {
    /// Distinguishes this cache's purges from those of others.
    pub(super) node: String,
    state: Mutex<State>,
    unconfirmed: Mutex<Unconfirmed>,
    pub(super) counts: Counts,
}

/// Events of all shards.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) hits: AtomicU64,
    pub(super) stores: AtomicU64,
    pub(super) purges_sent: AtomicU64,
    pub(super) purges_received: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[derive(Debug, Default)]
struct State {
    epoch: String,
    /// The purges in this epoch.
    purges: PurgeLog,
}

/// The purges of this gateway that the server may not have numbered yet.
#[derive(Debug, Default)]
struct Unconfirmed {
    last: u64,
    /// The local epoch before each, and a number.
    all: BTreeSet<(PurgeEpoch, u64)>,
}

/// A purge is unconfirmed as long as this exists.
#[derive(Debug)]
pub(super) struct Pending {
    known: Arc<KnownPurges>,
    place: (PurgeEpoch, u64),
}

/// Epoch and generation that were known at some time.
pub(super) type Known = (String, u64);

impl Default for KnownPurges {
    fn default() -> Self {
        Self {
            node: random_name(),
            state: Mutex::default(),
            unconfirmed: Mutex::default(),
            counts: Counts::default(),
        }
    }
}

impl KnownPurges {
    /// The number of the latest purge that was applied here.
    pub(super) fn generation(&self) -> u64 {
        self.state().purges.latest()
    }

    /// The same, if that is the epoch.
    pub(super) fn generation_in(&self, epoch: &str) -> Option<u64> {
        Some(self.in_epoch(epoch)?.purges.latest())
    }

    pub(super) fn now(&self) -> Known {
        let state = self.state();
        (state.epoch.clone(), state.purges.latest())
    }

    /// Learns what a connection has joined; `before` is what was known when it asked.
    pub(super) fn join(
        &self,
        local: &dyn LocalTiers,
        before: &Known,
        epoch: &str,
        generation: u64,
        latest: Vec<Message>,
    ) {
        let mut state = self.state();
        // Another shard may have learnt more since.
        let has_lost = before.0 == epoch && before.1 > generation;
        if state.epoch == epoch && !has_lost {
            return self.apply_in_order(&mut state, local, latest);
        }
        local.purge_locally(Selector::All, false);
        state.purges = PurgeLog::since(generation.saturating_sub(latest.len() as u64));
        for message in latest {
            state.purges.note(message.generation, message.selector);
        }
        state.epoch = epoch.to_owned();
    }

    /// Applies a purge if it is the next one; false if one before it is missing. `None` in another
    /// epoch.
    pub(super) fn apply(
        &self,
        local: &dyn LocalTiers,
        epoch: &str,
        message: Message,
    ) -> Option<bool> {
        Some(self.apply_next(&mut *self.in_epoch(epoch)?, local, message))
    }

    /// Applies the latest purges; if some before them are missing, everything counts as purged.
    pub(super) fn apply_all(
        &self,
        local: &dyn LocalTiers,
        epoch: &str,
        latest: Vec<Message>,
    ) -> Option<()> {
        self.apply_in_order(&mut *self.in_epoch(epoch)?, local, latest);
        Some(())
    }

    fn apply_in_order(&self, state: &mut State, local: &dyn LocalTiers, latest: Vec<Message>) {
        for message in latest {
            if message.generation > state.purges.latest() + 1 {
                local.purge_locally(Selector::All, false);
                state.purges = PurgeLog::since(message.generation - 1);
            }
            self.apply_next(state, local, message);
        }
    }

    fn apply_next(&self, state: &mut State, local: &dyn LocalTiers, message: Message) -> bool {
        let next = state.purges.latest() + 1;
        if message.generation != next {
            return message.generation < next;
        }
        if message.node != self.node {
            count(&self.counts.purges_received);
            local.purge_locally(message.selector.clone(), message.is_soft);
        }
        state.purges.note(message.generation, message.selector);
        true
    }

    /// The pages, behind their generations, that no purge selects; `None` in another epoch.
    pub(super) fn unpurged(&self, epoch: &str, pages: Vec<(u64, Entry)>) -> Option<Vec<Entry>> {
        let state = self.in_epoch(epoch)?;
        let purges = &state.purges;
        let is_valid = |(generation, entry): &(u64, Entry)| {
            *generation <= purges.latest() && !purges.concerns(*generation, entry)
        };
        Some(pages.into_iter().filter(is_valid).map(|(_, entry)| entry).collect())
    }

    /// Notes a purge before it is in effect here; `before` is the local epoch.
    pub(super) fn begin(self: &Arc<Self>, before: PurgeEpoch) -> Pending {
        let mut unconfirmed = self.unconfirmed();
        unconfirmed.last += 1;
        let place = (before, unconfirmed.last);
        unconfirmed.all.insert(place);
        Pending { known: self.clone(), place }
    }

    /// The local epoch that a page from the server is certainly as new as: purges of other shards since
    /// then may be on their way to the server.
    pub(super) fn numbered(&self, now: PurgeEpoch) -> PurgeEpoch {
        let unconfirmed = self.unconfirmed();
        unconfirmed.all.first().map_or(now, |(before, _)| now.min(*before))
    }

    /// The number of unconfirmed purges.
    pub(super) fn pending(&self) -> usize {
        self.unconfirmed().all.len()
    }

    fn in_epoch(&self, epoch: &str) -> Option<MutexGuard<'_, State>> {
        Some(self.state()).filter(|state| state.epoch == epoch)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unconfirmed(&self) -> MutexGuard<'_, Unconfirmed> {
        self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.known.unconfirmed().all.remove(&self.place);
    }
}

/// A name that no other gateway has.
pub(super) fn random_name() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}
