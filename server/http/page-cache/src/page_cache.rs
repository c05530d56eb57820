//! The page cache of an app on one shard: its front, and its access to the pages of all shards.
//!
//! Owned by the app; the handlers of the gateway look pages up, store and purge them. Memory is the
//! first tier and answers every hit; disk and the shared tier are behind it, and an entry found there
//! is copied into memory. A hit is answered by the front of the shard. Invariants: a purge is in effect
//! in memory and on disk, for all shards, when it returns; an entry whose rendering began before a purge
//! that selects it is not stored in any tier.
//!
//! A cache belongs to the generation that rendered its pages: a reload starts with an empty one, so
//! that no page of an old release outlives it. The shards of a gateway are reloaded one after the other;
//! meanwhile a purge applies to both generations.

mod purges;
mod stats;

use crate::audit::{Audit, Replay, Sample};
use crate::clock::now_s;
use crate::compressor::Compressor;
use crate::disk_tier::DiskTier;
use crate::entry::Entry;
use crate::front::{Front, Variant};
use crate::key::Key;
use crate::pages::{Pages, Shard};
use crate::purge::Selector;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::shared_tier::SharedTier;
use crate::single_flight::SingleFlight;
use crate::store::{Found, PurgeEpoch, Store};
use outboard_admin_api::cache::Finding;
use outboard_config::App;
use outboard_log::{ErrorLog, Event, Level};
use outboard_reactor::{spawn, yield_now};
use outboard_upstream::Client;
use std::cell::RefCell;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::{Arc, MutexGuard};

/// See the module.
#[derive(Debug)]
pub struct PageCache {
    pages: Arc<Pages>,
    front: RefCell<Front>,
    shard: Arc<Shard>,
    shared: Option<Rc<SharedTier>>,
    compressor: Rc<Compressor>,
    audit: Audit,
    /// This shard's cache of the same app after a reload.
    successor: RefCell<Weak<Self>>,
    log: Rc<ErrorLog>,
}

impl PageCache {
    /// The cache that is configured for an app, if one is, on the lead; empty, except for the entries on
    /// disk if no generation was before this one.
    ///
    /// # Errors
    /// The directory on disk cannot be used.
    pub fn open(
        app: &App,
        is_first: bool,
        upstream: &Rc<Client>,
        log: &Rc<ErrorLog>,
    ) -> io::Result<Option<Rc<Self>>> {
        let Some(pages) = Pages::open(app, is_first)? else { return Ok(None) };
        let cache = Self::join(pages, upstream, log);
        cache.recover();
        Ok(Some(cache))
    }

    /// The cache on another shard, with the same pages. Called on the thread of the shard.
    pub fn join(pages: Arc<Pages>, upstream: &Rc<Client>, log: &Rc<ErrorLog>) -> Rc<Self> {
        let tier =
            |(shared, known): &(_, _)| SharedTier::new(shared, &pages.app, known, upstream, log);
        let budget_bytes = pages.memory().budget_bytes();
        let cache = Rc::new(Self {
            front: RefCell::new(Front::new(budget_bytes)),
            shard: pages.add_shard(),
            shared: pages.shared.as_ref().map(tier),
            compressor: Rc::default(),
            audit: Audit::new(&pages.app, pages.audit_ppm, &pages.removed),
            successor: RefCell::default(),
            log: log.clone(),
            pages,
        });
        spawn(sweep_front(Rc::downgrade(&cache), cache.shard.clone()));
        if let Some(shared) = cache.shared.clone() {
            let local = Rc::downgrade(&cache);
            spawn(shared.run(local));
        }
        cache
    }

    /// What all shards share, for [`Self::join`].
    pub fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.pages.settings
    }

    /// The audit.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The pages that are being rendered.
    pub fn single_flight(&self) -> &Arc<SingleFlight> {
        &self.pages.single_flight
    }

    /// The entries in memory. While they are locked, other shards wait for them, and nothing else of
    /// this may be called.
    pub fn memory(&self) -> MutexGuard<'_, Store> {
        self.pages.memory()
    }

    /// The present epoch; taken when a rendering begins, for [`Self::insert`].
    pub fn purge_epoch(&self) -> PurgeEpoch {
        self.memory().purge_epoch()
    }

    /// The entry in memory under `key` for which `matches` holds.
    pub fn find(
        &self,
        key: &impl AsRef<[u8]>,
        mut matches: impl FnMut(&Entry) -> bool,
    ) -> Found<Shared> {
        let mut front = self.front.borrow_mut();
        if let Some(entry) = front.find(key.as_ref(), &mut matches) {
            return Found::Entry(entry);
        }
        let memory = self.memory();
        match memory.find(key, matches) {
            Found::Entry(stored) => {
                let variants = memory.variants(key.as_ref()).map(Variant::of).collect();
                drop(memory);
                front.put(key.as_ref(), variants);
                Found::Entry(stored.into())
            }
            Found::OtherVariants => Found::OtherVariants,
            Found::Nothing => Found::Nothing,
        }
    }

    /// The same on disk: the number of its file, for [`Self::load`].
    pub fn find_on_disk(&self, key: &Key, matches: impl FnMut(&Entry) -> bool) -> Option<u64> {
        self.disk()?.find(key, matches)
    }

    fn disk(&self) -> Option<&DiskTier> {
        self.pages.disk.as_ref()
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
        if let Some((disk, file)) = self.disk().zip(file)
            && let Some(began) = disk.epoch(file, || self.purge_epoch())
            && let Some(entry) = disk.read(key, file).await
            && let Ok(entry) = self.insert(entry, began)
        {
            return vec![entry];
        }
        let Some(shared) = &self.shared else { return Vec::new() };
        let began = shared.numbered(self.purge_epoch());
        let entries = shared.get(self, key).await.into_iter();
        entries.filter_map(|entry| self.insert(entry, began).ok()).collect()
    }

    /// Inserts an entry into memory. `began` is the epoch in which its rendering began.
    ///
    /// # Errors
    /// The entry is too large, or was purged during its rendering.
    pub fn insert(&self, entry: Entry, began: PurgeEpoch) -> Result<Shared, Reason> {
        let stored = self.pages.change(|memory| memory.insert(entry, began, now_s()));
        stored.map(Shared::from)
    }

    /// Replaces the entry that `new` was derived from in all tiers; `None` if it was purged.
    pub fn replace(&self, old: &Shared, new: Entry) -> Option<Shared> {
        let replaced = self.pages.change(|memory| memory.replace(old.stored(), new))?;
        self.write_behind(&replaced, replaced.since());
        Some(replaced.into())
    }

    /// Compresses an entry in the background if that is worth it, and writes it to the other tiers.
    pub fn compress(self: &Rc<Self>, entry: &Shared) {
        let (cache, plain, since) = (self.clone(), entry.clone(), entry.stored().since());
        let replace = move |coded: Entry| {
            if cache.replace(&plain, coded.clone()).is_none() && cache.was_evicted(&coded, since) {
                cache.write_behind(&coded, since);
            }
        };
        if !self.compressor.push(entry, replace) {
            self.write_behind(entry, since);
        }
    }

    /// Whether memory has no entry for the same requests only for lack of room.
    fn was_evicted(&self, entry: &Entry, since: PurgeEpoch) -> bool {
        let memory = self.memory();
        let other = memory.find(entry.key(), |one| one.variant() == entry.variant());
        !matches!(other, Found::Entry(_)) && !memory.was_purged(since, entry)
    }

    /// Writes an entry that was stored in that epoch to the tiers behind memory.
    fn write_behind(&self, entry: &Entry, since: PurgeEpoch) {
        // The next generation has the directory and the shared pages.
        if self.pages.has_successor() {
            return;
        }
        if let Some(disk) = self.disk() {
            if let Some(fault) = disk.fault() {
                let text = format!("pages cannot be stored on disk, see page_cache.disk: {fault}");
                self.log(Level::Warn, &text);
            }
            disk.put(entry, || self.pages.was_purged(since, entry));
        }
        if let Some(shared) = &self.shared {
            shared.put(entry, || self.pages.was_purged(since, entry));
        }
    }

    /// Takes over the entries on disk, in the background.
    fn recover(self: &Rc<Self>) {
        let Some(scan) = self.disk().map(DiskTier::scan) else { return };
        let (cache, began) = (self.clone(), self.purge_epoch());
        spawn(async move {
            let found = scan.await;
            if let Some(disk) = cache.disk() {
                disk.adopt(found, |entry| cache.pages.was_purged(began, entry));
            }
        });
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
        self.log(Level::Error, &text);
    }

    fn log(&self, level: Level, text: &str) {
        self.log.write(level, Event { app: Some(&self.pages.app), text, ..Event::default() });
    }
}

/// Drops removed entries from the front of a shard whenever the pages call for that.
async fn sweep_front(cache: Weak<PageCache>, shard: Arc<Shard>) {
    loop {
        shard.bell.wait().await;
        let Some(cache) = cache.upgrade() else { return };
        let mut before = cache.front.borrow().places();
        while before > 0 {
            before = cache.front.borrow_mut().sweep(before);
            yield_now().await;
        }
    }
}

impl Drop for PageCache {
    fn drop(&mut self) {
        // Its task ends.
        self.shard.bell.ring();
    }
}

#[cfg(test)]
mod tests;
