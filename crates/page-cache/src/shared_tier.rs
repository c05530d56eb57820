//! The shared tier: pages and purges that several gateways share through Redis or Valkey.
//!
//! Owned by [`crate::PageCache`], which looks for a page here before it is rendered, and writes it here
//! afterwards. A purge is in effect locally before it is sent; the server numbers it (the generation)
//! and publishes it. Nothing is deleted on the server: each page carries the generation that it is as
//! new as, and a gateway ignores the pages that a later purge selects.
//!
//! Invariants: the loop never waits for the server, and requests for a bounded time; a page is used
//! only once all purges up to the lookup are known; after a disconnect the missed purges are applied
//! first, or everything is purged if they are no longer known; a purge that the server has not
//! confirmed is sent again.

mod commands;
#[cfg(test)]
pub(crate) mod fake_server;
mod link;
mod message;
mod received_purges;
mod sent_purges;
mod session;

use crate::clock::now_s;
use crate::entry::{Entry, Shared};
use crate::key::Key;
use crate::purge::Selector;
use crate::purge_log::PurgeLog;
use crate::record::{decoded, encoded};
use commands::Commands;
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
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;

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
    /// Distinguishes this cache's purges from those of others.
    node: String,
    client: Rc<Client>,
    log: Rc<ErrorLog>,
    /// The connection, once all purges are known that were missed without it.
    link: RefCell<Option<Rc<Link>>>,
    /// Why there is none.
    unavailable: RefCell<String>,
    epoch: RefCell<String>,
    /// The purges in this epoch.
    purges: RefCell<PurgeLog>,
    unconfirmed: RefCell<VecDeque<Rc<Broadcast>>>,
    settling: RefCell<Vec<TaskId>>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    hits: Cell<u64>,
    stores: Cell<u64>,
    purges_sent: Cell<u64>,
    purges_received: Cell<u64>,
}

fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

impl SharedTier {
    pub(crate) fn new(
        configured: &PageCacheShared,
        app: &str,
        client: &Rc<Client>,
        log: &Rc<ErrorLog>,
    ) -> Rc<Self> {
        Rc::new(Self {
            commands: Commands::new(&configured.name),
            configured: configured.clone(),
            app: app.into(),
            node: random_name(),
            client: client.clone(),
            log: log.clone(),
            link: RefCell::default(),
            unavailable: RefCell::new("not connected yet".to_owned()),
            epoch: RefCell::default(),
            purges: RefCell::default(),
            unconfirmed: RefCell::default(),
            settling: RefCell::default(),
            counts: Counts::default(),
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

    /// For `outboard cache stats`.
    pub(crate) fn stats(&self) -> SharedStats {
        SharedStats {
            server: format!("{}:{}", self.configured.host, self.configured.port),
            name: self.configured.name.clone(),
            away: self.unavailable_because(),
            generation: self.generation(),
            hits: self.counts.hits.get(),
            stores: self.counts.stores.get(),
            purges_sent: self.counts.purges_sent.get(),
            purges_received: self.counts.purges_received.get(),
            purges_unconfirmed: self.unconfirmed.borrow().len(),
        }
    }

    /// The number of the latest purge that was applied here.
    fn generation(&self) -> u64 {
        self.purges.borrow().latest()
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
            count(&self.counts.hits);
        }
        entries
    }

    async fn read(&self, local: &dyn LocalTiers, key: &Key) -> Option<Vec<Entry>> {
        let link = self.link()?;
        let pages = self.commands.get(&link, &self.epoch.borrow(), key.bytes());
        let state = self.commands.state(&link);
        let pages = pages.wait().await.ok()?;
        let generation = self.generation_of(&link, &state.wait().await.ok()?)?;
        if generation > self.generation() {
            self.catch_up(local, &link).await?;
        }
        let records: Vec<Vec<u8>> =
            pages.into_array()?.into_iter().filter_map(Value::into_bytes).collect();
        let is_small = records.iter().map(Vec::len).sum::<usize>() < DECODE_HERE_BYTES;
        let decode = move || records.iter().filter_map(|page| stamped(page)).collect::<Vec<_>>();
        let pages = if is_small { decode() } else { on_cpu_thread(decode).await };
        let (purges, now_s) = (self.purges.borrow(), now_s());
        let is_valid = |(generation, entry): &(u64, Entry)| {
            entry.key() == key
                && entry.times().useful_until_s() >= now_s
                && *generation <= purges.latest()
                && !purges.concerns(*generation, entry)
        };
        Some(pages.into_iter().filter(is_valid).map(|(_, entry)| entry).collect())
    }

    /// Writes an entry that is stored here.
    pub(crate) fn put(&self, entry: &Shared) {
        let Some(link) = self.link() else { return };
        if entry.times().remaining_s(now_s()) < FRESH_MIN_S || link.is_congested() {
            return;
        }
        count(&self.counts.stores);
        // It is stored here, so no known purge selects it.
        let stamp = self.generation().to_le_bytes();
        let record = [&stamp[..], &encoded(entry)].concat();
        let useful_ms = entry.times().useful_until_s().saturating_sub(now_s()) * 1000;
        let (epoch, url) = (self.epoch.borrow(), entry.key().bytes());
        self.commands.put(&link, &epoch, url, entry.variant().hash(), &record, useful_ms);
    }
}

/// A record behind its generation.
fn stamped(page: &[u8]) -> Option<(u64, Entry)> {
    let (generation, record) = page.split_first_chunk()?;
    Some((u64::from_le_bytes(*generation), decoded(record)?))
}

/// A name that no other gateway has.
fn random_name() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

#[cfg(test)]
mod tests;
