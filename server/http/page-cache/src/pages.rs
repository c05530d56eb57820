//! The pages of an app, one for all shards: the tiers behind the fronts, and what else all shards share.
//!
//! Created by the lead and joined by the [`crate::PageCache`] of each shard. The locks here are taken for
//! lookups that a shard's front does not answer, for stores and for purges, in the order disk index,
//! memory, and never while a task waits. Invariants:
//!
//! - Once a purge returns, no shard serves a page that it selects. It clears the editions of the entries
//!   (Release, under the lock of memory) before it returns; what makes a later lookup later than the
//!   return also makes it see that (Acquire), so that the front drops the entry and asks memory, which
//!   does not have it. An entry that is inserted later is checked against the purges since its rendering
//!   began, under the same lock.
//! - A purge is in memory and on disk at once for all that write to disk or load from it.
//! - Fronts hold at most a sixteenth of the budget in entries that memory has removed, plus what is
//!   removed until each loop has had another turn: then all fronts are called to drop them, also those
//!   of shards without requests. The fronts themselves ([`crate::front`]) and the pages that responses
//!   under way still hold are not in the budget.

use crate::audit::RemovedPaths;
use crate::clock::now_s;
use crate::disk_tier::DiskTier;
use crate::doorbell::Doorbell;
use crate::entry::Entry;
use crate::purge::Selector;
use crate::settings::Settings;
use crate::shared_tier::KnownPurges;
use crate::single_flight::SingleFlight;
use crate::status_counts::{Responses, StatusCounts};
use crate::store::{Purge, PurgeEpoch, Store};
use outboard_config::{App, PageCacheShared};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// How long a page may be used after a soft purge while a new one is rendered, in seconds.
const SOFT_GRACE_S: u32 = 60;

/// See the module.
#[derive(Debug)]
pub struct Pages {
    pub(crate) app: Box<str>,
    pub(crate) settings: Settings,
    pub(crate) audit_ppm: u32,
    memory: Mutex<Store>,
    pub(crate) disk: Option<DiskTier>,
    pub(crate) shared: Option<(PageCacheShared, Arc<KnownPurges>)>,
    pub(crate) single_flight: Arc<SingleFlight>,
    pub(crate) removed: Arc<RemovedPaths>,
    shards: Mutex<Vec<Arc<Shard>>>,
    /// Those of the app's generation before this one.
    older: OnceLock<Weak<Self>>,
    /// Those of the next one.
    newer: OnceLock<Weak<Self>>,
    /// Sends purges to the other process of an upgrade.
    outside: OnceLock<Outside>,
}

/// Sends a purge, and whether it is a soft one.
type SendPurge = Box<dyn Fn(&Selector, bool) + Send + Sync>;

/// See [`Pages::outside`].
struct Outside(SendPurge);

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}

/// What the others need of a shard.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    pub(crate) counts: StatusCounts,
    /// Calls it to sweep its front.
    pub(crate) bell: Doorbell,
}

impl Pages {
    /// The pages that are configured for an app, if they are; none yet, and without what is on disk.
    ///
    /// # Errors
    /// The directory on disk cannot be used.
    pub(crate) fn open(app: &App, is_first: bool) -> io::Result<Option<Arc<Self>>> {
        let Some(configured) = &app.page_cache else { return Ok(None) };
        // Only the other gateways know what was purged since.
        let takes_over = is_first && configured.shared.is_none();
        let open = |disk| DiskTier::open(disk, &app.name, takes_over);
        let max_bytes = usize::try_from(configured.max_memory_bytes).unwrap_or(usize::MAX);
        Ok(Some(Arc::new(Self {
            app: app.name.as_str().into(),
            settings: Settings::new(app, configured),
            audit_ppm: configured.audit_ppm,
            memory: Mutex::new(Store::new(max_bytes)),
            disk: configured.disk.as_ref().map(open).transpose()?,
            shared: configured.shared.clone().map(|shared| (shared, Arc::default())),
            single_flight: Arc::default(),
            removed: Arc::default(),
            shards: Mutex::default(),
            older: OnceLock::new(),
            newer: OnceLock::new(),
            outside: OnceLock::new(),
        })))
    }

    /// The entries in memory. Nothing else of this is called while they are locked.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Store> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes memory, and calls the fronts if they hold too much.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let mut memory = self.memory();
        let result = change(&mut memory);
        let is_too_much_held = memory.take_held_too_much();
        drop(memory);
        if is_too_much_held {
            self.shards().iter().for_each(|shard| shard.bell.ring());
        }
        result
    }

    /// Whether a purge since `since` selected this entry, or may have.
    pub(crate) fn was_purged(&self, since: PurgeEpoch, entry: &Entry) -> bool {
        self.memory().was_purged(since, entry)
    }

    /// Passes purges on to another process.
    pub(crate) fn set_outside(&self, send: impl Fn(&Selector, bool) + Send + Sync + 'static) {
        // It does not change.
        let _ = self.outside.set(Outside(Box::new(send)));
    }

    /// Purges memory and disk.
    pub(crate) fn purge(&self, selector: &Selector, is_soft: bool) -> usize {
        let purged = self.purge_here(selector, is_soft);
        if let Some(Outside(send)) = self.outside.get().filter(|_| !self.has_successor()) {
            send(selector, is_soft);
        }
        purged
    }

    /// The same for a purge that another process has sent, for all generations so far.
    pub(crate) fn purge_from_outside(&self, selector: &Selector, is_soft: bool) {
        let mut next = upgrade(&self.older);
        while let Some(older) = next {
            older.purge_here(selector, is_soft);
            next = upgrade(&older.older);
        }
        self.purge_here(selector, is_soft);
    }

    fn purge_here(&self, selector: &Selector, is_soft: bool) -> usize {
        let purge = match is_soft {
            true => Purge::Soft { now_s: now_s(), grace_s: SOFT_GRACE_S },
            false => Purge::Hard,
        };
        let purge_memory = || self.change(|memory| memory.purge(selector.clone(), purge));
        match &self.disk {
            Some(disk) => disk.purge(selector, purge_memory),
            None => purge_memory(),
        }
    }

    /// Purges the pages of older generations, which shards use until they are at the present one.
    pub(crate) fn purge_older(&self, selector: &Selector, is_soft: bool) {
        let mut next = upgrade(&self.older);
        while let Some(older) = next {
            older.purge(selector, is_soft);
            next = upgrade(&older.older);
        }
    }

    /// Purges the pages of later generations; returns the number of entries that memory had.
    pub(crate) fn purge_newer(&self, selector: &Selector, is_soft: bool) -> usize {
        let (mut next, mut purged) = (upgrade(&self.newer), 0);
        while let Some(newer) = next {
            purged += newer.purge(selector, is_soft);
            next = upgrade(&newer.newer);
        }
        purged
    }

    /// Whether there is a later generation, whose pages these no longer are.
    pub(crate) fn has_successor(&self) -> bool {
        self.newer.get().is_some()
    }

    /// Sets those of the app's next generation; true for the first shard that does it.
    pub(crate) fn set_successor(self: &Arc<Self>, successor: &Arc<Self>) -> bool {
        if self.newer.set(Arc::downgrade(successor)).is_err() {
            return false;
        }
        // A generation succeeds one.
        let _ = successor.older.set(Arc::downgrade(self));
        if let Some(disk) = &self.disk {
            disk.remove_all();
        }
        true
    }

    /// Adds a shard.
    pub(crate) fn add_shard(&self) -> Arc<Shard> {
        let shard: Arc<Shard> = Arc::default();
        self.shards().push(shard.clone());
        shard
    }

    /// The responses of all shards by cache status.
    pub(crate) fn responses(&self) -> Responses {
        StatusCounts::sum(self.shards().iter().map(|shard| &shard.counts))
    }

    fn shards(&self) -> MutexGuard<'_, Vec<Arc<Shard>>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn upgrade(pages: &OnceLock<Weak<Pages>>) -> Option<Arc<Pages>> {
    pages.get()?.upgrade()
}
