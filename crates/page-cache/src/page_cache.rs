//! The page cache of an app: its tiers, and what coordinates the requests that use them.
//!
//! Owned by the app; the handlers of the gateway look pages up, store and purge them. Memory is the
//! first tier and answers every hit; disk and the shared tier are behind it, and an entry found there
//! is copied into memory. Invariants: a purge is in effect in memory and on disk when it returns; an
//! entry whose rendering began before a purge that selects it is not stored in any tier.
//!
//! A cache belongs to the generation that rendered its pages: a reload starts with an empty one, so
//! that no page of an old release outlives it.

mod stats;

use crate::audit::{Audit, Replay, Sample};
use crate::clock::now_s;
use crate::compressor::Compressor;
use crate::disk_tier::DiskTier;
use crate::entry::{Entry, Shared};
use crate::key::Key;
use crate::purge::Selector;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::shared_tier::{LocalTiers, SharedTier};
use crate::single_flight::SingleFlight;
use crate::store::{Found, Purge, PurgeEpoch, Store};
use outboard_admin_api::cache::Finding;
use outboard_config::App;
use outboard_log::{ErrorLog, Event, Level};
use outboard_reactor::spawn;
use outboard_upstream::Client;
use stats::StatusCounts;
use std::cell::{Ref, RefCell};
use std::io;
use std::rc::{Rc, Weak};

/// How long a page may be used after a soft purge while a new one is rendered, in seconds.
const SOFT_GRACE_S: u32 = 60;

/// See the module.
#[derive(Debug)]
pub struct PageCache {
    settings: Settings,
    memory: RefCell<Store>,
    disk: Option<DiskTier>,
    shared: Option<Rc<SharedTier>>,
    single_flight: Rc<SingleFlight>,
    compressor: Rc<Compressor>,
    audit: Audit,
    counts: StatusCounts,
    /// The cache of the same app after a reload.
    successor: RefCell<Weak<Self>>,
    app: Box<str>,
    log: Rc<ErrorLog>,
}

impl PageCache {
    /// The cache that is configured for an app, if one is; empty, except for the entries on disk if no
    /// generation was before this one.
    ///
    /// # Errors
    /// The directory on disk cannot be used.
    pub fn open(
        app: &App,
        is_first: bool,
        upstream: &Rc<Client>,
        log: &Rc<ErrorLog>,
    ) -> io::Result<Option<Rc<Self>>> {
        let Some(configured) = &app.page_cache else { return Ok(None) };
        let shared = configured.shared.as_ref();
        // Only the other gateways know what was purged since.
        let takes_over = is_first && shared.is_none();
        let open = |disk| DiskTier::open(disk, &app.name, takes_over, log);
        let disk = configured.disk.as_ref().map(open).transpose()?;
        let max_bytes = usize::try_from(configured.max_memory_bytes).unwrap_or(usize::MAX);
        let cache = Rc::new(Self {
            settings: Settings::new(app, configured),
            memory: RefCell::new(Store::new(max_bytes)),
            disk,
            shared: shared.map(|shared| SharedTier::new(shared, &app.name, upstream, log)),
            single_flight: Rc::default(),
            compressor: Rc::default(),
            audit: Audit::new(&app.name, configured.audit_ppm),
            counts: StatusCounts::default(),
            successor: RefCell::default(),
            app: app.name.as_str().into(),
            log: log.clone(),
        });
        cache.recover();
        if let Some(shared) = cache.shared.clone() {
            let local = Rc::downgrade(&cache);
            spawn(shared.run(local));
        }
        Ok(Some(cache))
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The audit.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The pages that are being rendered.
    pub fn single_flight(&self) -> &Rc<SingleFlight> {
        &self.single_flight
    }

    /// The entries in memory.
    pub fn memory(&self) -> Ref<'_, Store> {
        self.memory.borrow()
    }

    /// The present epoch; taken when a rendering begins, for [`Self::insert`].
    pub fn purge_epoch(&self) -> PurgeEpoch {
        self.memory().purge_epoch()
    }

    /// The entry in memory under `key` for which `matches` holds.
    pub fn find(&self, key: &impl AsRef<[u8]>, matches: impl FnMut(&Entry) -> bool) -> Found {
        self.memory.borrow_mut().find(key, matches)
    }

    /// The same on disk: the number of its file, for [`Self::load`].
    pub fn find_on_disk(&self, key: &Key, matches: impl FnMut(&Entry) -> bool) -> Option<u64> {
        self.disk.as_ref()?.find(key, matches)
    }

    /// Whether there is a shared tier, available or not.
    pub fn has_shared_tier(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether pages can be read from the shared tier at the moment.
    pub fn is_shared_tier_available(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.is_available())
    }

    /// Reads entries from the disk, or else from the shared tier, and inserts them into memory.
    pub async fn load(&self, key: &Key, file: Option<u64>) -> Vec<Shared> {
        let began = self.purge_epoch();
        if let Some((disk, file)) = self.disk.as_ref().zip(file)
            && let Some(entry) = disk.read(key, file).await
            && let Ok(entry) = self.insert(entry, began)
        {
            return vec![entry];
        }
        let Some(shared) = &self.shared else { return Vec::new() };
        let began = self.purge_epoch();
        let entries = shared.get(self, key).await.into_iter();
        entries.filter_map(|entry| self.insert(entry, began).ok()).collect()
    }

    /// Inserts an entry into memory. `began` is the epoch in which its rendering began.
    ///
    /// # Errors
    /// The entry is too large, or was purged during its rendering.
    pub fn insert(&self, entry: Entry, began: PurgeEpoch) -> Result<Shared, Reason> {
        self.memory.borrow_mut().insert(entry, began, now_s())
    }

    /// Replaces the entry that `new` was derived from in all tiers; `None` if it was purged.
    pub fn replace(&self, old: &Shared, new: Entry) -> Option<Shared> {
        let replaced = self.memory.borrow_mut().replace(old, new)?;
        self.write_behind(&replaced);
        Some(replaced)
    }

    /// Compresses an entry in the background if that is worth it, and writes it to the other tiers.
    pub fn compress(self: &Rc<Self>, entry: &Shared) {
        let (cache, plain, since) = (self.clone(), entry.clone(), self.purge_epoch());
        let replace = move |coded: Entry| {
            if cache.replace(&plain, coded.clone()).is_none() && cache.was_evicted(&coded, since) {
                cache.write_behind(&coded.into());
            }
        };
        if !self.compressor.push(entry, replace) {
            self.write_behind(entry);
        }
    }

    /// Whether memory has no entry for the same requests only for lack of room.
    fn was_evicted(&self, entry: &Entry, since: PurgeEpoch) -> bool {
        let other = self.find(entry.key(), |one| one.variant() == entry.variant());
        !matches!(other, Found::Entry(_)) && !self.memory().was_purged(since, entry)
    }

    fn write_behind(&self, entry: &Shared) {
        if let Some(disk) = &self.disk {
            disk.put(entry);
        }
        if let Some(shared) = &self.shared {
            shared.put(entry);
        }
    }

    /// Takes over the entries on disk, in the background.
    fn recover(self: &Rc<Self>) {
        let Some(scan) = self.disk.as_ref().map(DiskTier::scan) else { return };
        let (cache, began) = (self.clone(), self.purge_epoch());
        spawn(async move {
            let found = scan.await;
            if let Some(disk) = &cache.disk {
                disk.adopt(found, |entry| cache.memory().was_purged(began, entry));
            }
        });
    }

    /// Purges one URL.
    pub fn purge_url(&self, key: &Key) {
        self.purge(Selector::Url(key.bytes().to_vec()), false);
    }

    /// Purges, here and in the shared tier; returns the number of entries that memory had.
    pub fn purge(&self, selector: Selector, is_soft: bool) -> usize {
        if let Some(shared) = &self.shared
            && self.successor().is_none()
        {
            shared.broadcast(&selector, is_soft);
        }
        self.purge_tiers(selector, is_soft)
    }

    /// Purges memory and disk.
    fn purge_tiers(&self, selector: Selector, is_soft: bool) -> usize {
        if let Some(disk) = &self.disk {
            disk.purge(&selector);
        }
        let purge = match is_soft {
            true => Purge::Soft { now_s: now_s(), grace_s: SOFT_GRACE_S },
            false => Purge::Hard,
        };
        self.memory.borrow_mut().purge(selector, purge)
    }

    /// Purges, also in the caches of later generations: their workers do not know of it.
    pub fn purge_with_successors(&self, selectors: &[Selector], is_soft: bool) -> usize {
        let purge = |selector: &Selector| self.purge(selector.clone(), is_soft);
        let own: usize = selectors.iter().map(purge).sum();
        let successor = self.successor();
        own + successor.map_or(0, |successor| successor.purge_with_successors(selectors, is_soft))
    }

    /// Waits until the server of the shared tier has confirmed all purges so far, those of
    /// [`Self::purge_with_successors`] included; false if it has not yet.
    pub async fn settle(&self) -> bool {
        let is_confirmed = match &self.shared {
            Some(shared) => shared.settle().await,
            None => true,
        };
        match self.successor() {
            Some(successor) => Box::pin(successor.settle()).await && is_confirmed,
            None => is_confirmed,
        }
    }

    /// Sets the cache of the app's next generation.
    pub fn set_successor(&self, successor: &Rc<Self>) {
        self.successor.replace(Rc::downgrade(successor));
        if let Some(disk) = &self.disk {
            disk.remove_all();
        }
        // The old release rendered the shared pages.
        if let Some(shared) = &successor.shared {
            shared.broadcast(&Selector::All, true);
        }
    }

    fn successor(&self) -> Option<Rc<Self>> {
        self.successor.borrow().upgrade()
    }

    /// Remembers a hit for the audit or examines it, if it is its turn.
    pub fn sample_hit(
        self: &Rc<Self>,
        entry: &Entry,
        prepare: impl FnOnce() -> Option<Rc<dyn Replay>>,
    ) {
        let Some(sample) = self.audit.sample(entry, prepare) else { return };
        let cache = self.clone();
        spawn(async move {
            if let Some(finding) = cache.audit.run(&sample).await {
                cache.remove_unsafe(&sample, &finding);
            }
        });
    }

    fn remove_unsafe(&self, sample: &Sample, finding: &Finding) {
        self.purge(Selector::prefix(sample.url_path()), false);
        let text = format!(
            "{} is not the same for all visitors and is no longer cached: {} makes a difference at \
             \"{}\"; send Vary or Cache-Control: private with it, or see page_cache.login_cookies",
            finding.url, finding.by, finding.excerpt
        );
        let event = Event { app: Some(&self.app), text: &text, ..Event::default() };
        self.log.write(Level::Error, event);
    }
}

impl LocalTiers for PageCache {
    fn purge_locally(&self, selector: Selector, is_soft: bool) {
        self.purge_tiers(selector, is_soft);
    }
}

#[cfg(test)]
mod tests;
