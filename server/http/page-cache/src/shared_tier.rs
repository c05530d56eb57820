//! The shared tier: pages and purges that several gateways share through Redis or Valkey.
//!
//! Owned by [`crate::PageCache`], which looks for a page here before it is rendered, and writes it here
//! afterwards. A purge is in effect locally before it is sent; the server numbers it (the generation)
//! and publishes it. Nothing is deleted on the server: each page carries the generation that it is as
//! new as, and a gateway ignores the pages that a later purge selects.
//!
//! Each shard has a connection of its own, so that no request of one waits for the loop of another and
//! a purge is confirmed to the shard that sends it. What must be one for all shards is in
//! `known_purges`: which purges are applied (each once, whichever connection brings it first), and which
//! ones of this gateway the server may lack. A page that is read meanwhile over another connection counts
//! as older than these.
//!
//! Invariants: the loop never waits for the server, and requests for a bounded time; a page is used
//! only once all purges up to the lookup are known; after a disconnect the missed purges are applied
//! first, or everything is purged if they are no longer known; a purge that the server has not
//! confirmed is sent again.

mod commands;
#[cfg(test)]
pub(crate) mod fake_server;
mod known_purges;
mod link;
mod message;
mod received_purges;
mod sent_purges;
mod session;

use crate::clock::now_s;
use crate::entry::Entry;
use crate::key::Key;
use crate::purge::Selector;
use crate::record::{decoded, encoded};
use crate::store::PurgeEpoch;
use commands::Commands;
pub(crate) use known_purges::KnownPurges;
use known_purges::count;
use link::Link;
#[cfg(fuzzing)]
pub(crate) use message::Message as PurgeMessage;
use outboard_admin_api::cache::SharedStats;
use outboard_config::PageCacheShared;
use outboard_log::{ErrorLog, Event, Level};
use outboard_reactor::{TaskId, now_ms, on_cpu_thread, with_deadline};
use outboard_resp::Value;
use outboard_upstream::Client;
use sent_purges::Broadcast;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A page that is fresh for less is not worth the transfer.
const FRESH_MIN_S: i64 = 5;
/// More than this is decoded on a thread.
const DECODE_HERE_BYTES: usize = 256 << 10;
/// A reply that the protocol does not allow.
const UNEXPECTED: &str = "unexpected reply";

/// The tiers of this gateway, to which the purges of other gateways apply.
pub(crate) trait LocalTiers {
    /// Purges memory and disk.
    fn purge_locally(&self, selector: Selector, is_soft: bool);
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SharedTier {
    configured: PageCacheShared,
    app: Box<str>,
    commands: Commands,
    known: Arc<KnownPurges>,
    client: Rc<Client>,
    log: Rc<ErrorLog>,
    /// The connection, once all purges are known that were missed without it.
    link: RefCell<Option<Rc<Link>>>,
    /// Why there is none.
    unavailable: RefCell<String>,
    /// The epoch that the connection has joined.
    epoch: RefCell<String>,
    unconfirmed: RefCell<VecDeque<Rc<Broadcast>>>,
    settling: RefCell<Vec<TaskId>>,
}

impl SharedTier {
    pub(crate) fn new(
        configured: &PageCacheShared,
        app: &str,
        known: &Arc<KnownPurges>,
        client: &Rc<Client>,
        log: &Rc<ErrorLog>,
    ) -> Rc<Self> {
        Rc::new(Self {
            commands: Commands::new(&configured.name),
            configured: configured.clone(),
            app: app.into(),
            known: known.clone(),
            client: client.clone(),
            log: log.clone(),
            link: RefCell::default(),
            unavailable: RefCell::new("not connected yet".to_owned()),
            epoch: RefCell::default(),
            unconfirmed: RefCell::default(),
            settling: RefCell::default(),
        })
    }

    /// Whether pages can be read and written.
    pub(crate) fn is_available(&self) -> bool {
        self.link.borrow().is_some()
    }

    fn link(&self) -> Option<Rc<Link>> {
        self.link.borrow().clone()
    }

    /// Why the server is not available, if it is not.
    pub(crate) fn unavailable_because(&self) -> Option<String> {
        (!self.is_available()).then(|| self.unavailable.borrow().clone())
    }

    /// For `outboard cache stats`: of all shards, but for the connection.
    pub(crate) fn stats(&self) -> SharedStats {
        let counts = &self.known.counts;
        SharedStats {
            server: format!("{}:{}", self.configured.host, self.configured.port),
            name: self.configured.name.clone(),
            away: self.unavailable_because(),
            generation: self.known.generation(),
            hits: counts.hits.load(Ordering::Relaxed),
            stores: counts.stores.load(Ordering::Relaxed),
            purges_sent: counts.purges_sent.load(Ordering::Relaxed),
            purges_received: counts.purges_received.load(Ordering::Relaxed),
            purges_unconfirmed: self.known.pending(),
        }
    }

    /// The local epoch that a page is certainly as new as which is read from now on.
    pub(crate) fn numbered(&self, now: PurgeEpoch) -> PurgeEpoch {
        self.known.numbered(now)
    }

    fn log(&self, level: Level, text: &str) {
        let event = Event { app: Some(&self.app), text, ..Event::default() };
        self.log.write(level, event);
    }

    /// The stored pages under `key` that no purge selects.
    pub(crate) async fn get(&self, local: &dyn LocalTiers, key: &Key) -> Vec<Entry> {
        let until_ms = now_ms() + self.configured.timeout_ms;
        let entries = with_deadline(until_ms, self.read(local, key)).await;
        let entries = entries.ok().flatten().unwrap_or_default();
        if !entries.is_empty() {
            count(&self.known.counts.hits);
        }
        entries
    }

    async fn read(&self, local: &dyn LocalTiers, key: &Key) -> Option<Vec<Entry>> {
        let link = self.link()?;
        let epoch = self.epoch.borrow().clone();
        let pages = self.commands.get(&link, &epoch, key.bytes());
        let state = self.commands.state(&link);
        let pages = pages.wait().await.ok()?;
        let generation = self.generation_of(&link, &state.wait().await.ok()?)?;
        if generation > self.known_generation(&link)? {
            self.catch_up(local, &link).await?;
        }
        let records: Vec<Vec<u8>> =
            pages.into_array()?.into_iter().filter_map(Value::into_bytes).collect();
        let is_small = records.iter().map(Vec::len).sum::<usize>() < DECODE_HERE_BYTES;
        let decode = move || records.iter().filter_map(|page| stamped(page)).collect::<Vec<_>>();
        let mut pages = if is_small { decode() } else { on_cpu_thread(decode).await };
        let now_s = now_s();
        pages.retain(|(_, entry)| entry.key() == key && entry.times().useful_until_s() >= now_s);
        self.known.unpurged(&epoch, pages)
    }

    /// Writes an entry, unless it `was_purged` here.
    pub(crate) fn put(&self, entry: &Entry, was_purged: impl FnOnce() -> bool) {
        let Some(link) = self.link() else { return };
        if entry.times().remaining_s(now_s()) < FRESH_MIN_S || link.is_congested() {
            return;
        }
        let epoch = self.epoch.borrow();
        let Some(generation) = self.known.generation_in(&epoch) else { return };
        // In this order: all purges up to the generation have been applied here.
        if was_purged() {
            return;
        }
        count(&self.known.counts.stores);
        let record = [&generation.to_le_bytes()[..], &encoded(entry)].concat();
        let useful_ms = entry.times().useful_until_s().saturating_sub(now_s()) * 1000;
        let url = entry.key().bytes();
        self.commands.put(&link, &epoch, url, entry.variant().hash(), &record, useful_ms);
    }
}

/// A record behind its generation.
fn stamped(page: &[u8]) -> Option<(u64, Entry)> {
    let (generation, record) = page.split_first_chunk()?;
    Some((u64::from_le_bytes(*generation), decoded(record)?))
}

#[cfg(test)]
mod tests;
