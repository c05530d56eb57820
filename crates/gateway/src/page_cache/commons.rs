//! Pages and purges that several gateways share, by a Redis or Valkey between them.
//!
//! What memory has not is looked for there before it is made, and what is made is put there. A purge
//! is in effect here before it is sent; the server gives it a number, the generation, and tells all
//! others. Nothing is deleted there: each page has the generation that it is as new as, each gateway
//! knows the purges since, and does not take what one of them was about.
//!
//! Invariants: the loop never waits for the server, requests do so for a bounded time; a page is
//! taken only by who knows all purges up to the moment of looking; who was cut off hears what it
//! missed before it takes or puts anything, and forgets everything if that is not known any more;
//! a purge that the server has not confirmed is sent again.

mod commands;
mod link;
mod message;
mod resp;
mod session;

use super::{PageCache, now_s};
use crate::generation::Logs;
use commands::Commands;
use link::{Link, Lost};
use message::Message;
use outboard_admin_api::cache::SharedStats;
use outboard_config::PageCacheShared;
use outboard_log::{Event, Level};
use outboard_page_cache::{Entry, Key, Purge, PurgeLog, Selector, Shared, decoded, encoded};
use outboard_reactor::{TaskId, blocking, current_task, now_ms, spawn, wake, with_deadline};
use outboard_upstream::Client;
use resp::Value;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::task::Poll;
#[cfg(fuzzing)]
pub(crate) use {message::Message as PurgeMessage, resp::read as read_value};

/// A page that is fresh for less is not worth the way.
const FRESH_MIN_S: i64 = 5;
/// Purges that wait to be confirmed; with one more they become one of everything.
const UNCONFIRMED_MAX: usize = 1024;
/// More than this is decoded beside the loop.
const DECODE_HERE_BYTES: usize = 256 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Commons {
    configured: PageCacheShared,
    app: String,
    commands: Commands,
    /// Tells this cache's purges from those of others.
    node: String,
    client: Rc<Client>,
    logs: Rc<Logs>,
    /// The connection, once all is known that was missed without it.
    link: RefCell<Option<Rc<Link>>>,
    /// Why there is none.
    away: RefCell<String>,
    epoch: RefCell<String>,
    known: RefCell<PurgeLog>,
    unconfirmed: RefCell<VecDeque<Rc<Broadcast>>>,
    settling: RefCell<Vec<TaskId>>,
    counts: Counts,
}

/// A purge that everybody is to hear of.
#[derive(Debug)]
struct Broadcast {
    text: Vec<u8>,
}

#[derive(Debug, Default)]
struct Counts {
    taken: Cell<u64>,
    put: Cell<u64>,
    purges_sent: Cell<u64>,
    purges_heard: Cell<u64>,
}

fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

impl Commons {
    pub(super) fn new(
        configured: &PageCacheShared,
        app: &str,
        client: &Rc<Client>,
        logs: &Rc<Logs>,
    ) -> Rc<Self> {
        Rc::new(Self {
            commands: Commands::new(&configured.name),
            configured: configured.clone(),
            app: app.to_owned(),
            node: some_name(),
            client: client.clone(),
            logs: logs.clone(),
            link: RefCell::default(),
            away: RefCell::new("not connected yet".to_owned()),
            epoch: RefCell::default(),
            known: RefCell::default(),
            unconfirmed: RefCell::default(),
            settling: RefCell::default(),
            counts: Counts::default(),
        })
    }

    /// Whether pages can be taken and put.
    pub(super) fn is_there(&self) -> bool {
        self.link.borrow().is_some()
    }

    fn link(&self) -> Option<Rc<Link>> {
        self.link.borrow().clone()
    }

    /// Why the server is not there, if it is not.
    pub(super) fn absence(&self) -> Option<String> {
        (!self.is_there()).then(|| self.away.borrow().clone())
    }

    /// For `outboard cache stats`.
    pub(super) fn stats(&self) -> SharedStats {
        SharedStats {
            server: format!("{}:{}", self.configured.host, self.configured.port),
            name: self.configured.name.clone(),
            away: self.absence(),
            generation: self.known.borrow().latest(),
            hits: self.counts.taken.get(),
            stores: self.counts.put.get(),
            purges_sent: self.counts.purges_sent.get(),
            purges_received: self.counts.purges_heard.get(),
            purges_unconfirmed: self.unconfirmed.borrow().len(),
        }
    }

    fn log(&self, level: Level, text: &str) {
        let event = Event { app: Some(&self.app), text, ..Event::default() };
        self.logs.error.write(level, event);
    }

    /// Tells everybody of a purge that is in effect here.
    pub(super) fn broadcast(self: &Rc<Self>, selector: &Selector, is_soft: bool) {
        let mut unconfirmed = self.unconfirmed.borrow_mut();
        let text = if unconfirmed.len() < UNCONFIRMED_MAX {
            message::encoded(&self.node, is_soft, selector)
        } else {
            // Those that were sent are confirmed to nobody.
            unconfirmed.clear();
            message::encoded(&self.node, false, &Selector::All)
        };
        let broadcast = Rc::new(Broadcast { text });
        unconfirmed.push_back(broadcast.clone());
        drop(unconfirmed);
        if let Some(link) = self.link() {
            self.send(&link, broadcast);
        }
    }

    fn send(self: &Rc<Self>, link: &Rc<Link>, broadcast: Rc<Broadcast>) {
        let reply = self.commands.purge(link, &self.epoch.borrow(), &broadcast.text);
        count(&self.counts.purges_sent);
        let (commons, link) = (self.clone(), Rc::downgrade(link));
        spawn(async move {
            match reply.wait().await {
                Ok(Value::Number(_)) => commons.confirm(&broadcast),
                Ok(other) => {
                    if let Some(link) = link.upgrade() {
                        link.give_up(&format!("it does not take a purge: {}", told(&other)));
                    }
                }
                // It is sent again over the next connection.
                Err(Lost) => {}
            }
        });
    }

    fn confirm(&self, broadcast: &Rc<Broadcast>) {
        self.unconfirmed.borrow_mut().retain(|one| !Rc::ptr_eq(one, broadcast));
        self.settling.take().into_iter().for_each(wake);
    }

    /// Waits until everybody who is connected has been told of all purges so far; false if that
    /// takes too long, or the server is away.
    pub(super) async fn settle(&self) -> bool {
        let Some(last) = self.unconfirmed.borrow().back().cloned() else { return true };
        let settled = poll_fn(|_| {
            let is_left = self.unconfirmed.borrow().iter().any(|one| Rc::ptr_eq(one, &last));
            if !is_left || !self.is_there() {
                return Poll::Ready(!is_left);
            }
            self.settling.borrow_mut().push(current_task());
            Poll::Pending
        });
        let until_ms = now_ms() + self.configured.timeout_ms;
        with_deadline(until_ms, settled).await.unwrap_or(false)
    }

    /// The pages there under `key` that no purge was about.
    pub(super) async fn take(self: &Rc<Self>, cache: &PageCache, key: &Key) -> Vec<Entry> {
        let until_ms = now_ms() + self.configured.timeout_ms;
        let taken = with_deadline(until_ms, self.look(cache, key)).await;
        let taken = taken.ok().flatten().unwrap_or_default();
        if !taken.is_empty() {
            count(&self.counts.taken);
        }
        taken
    }

    async fn look(self: &Rc<Self>, cache: &PageCache, key: &Key) -> Option<Vec<Entry>> {
        let link = self.link()?;
        let pages = self.commands.get(&link, &self.epoch.borrow(), key.bytes());
        let state = self.commands.state(&link);
        let pages = pages.wait().await.ok()?;
        let generation = self.generation(&link, &state.wait().await.ok()?)?;
        if generation > self.known.borrow().latest() {
            self.catch_up(cache, &link).await?;
        }
        let records: Vec<Vec<u8>> =
            pages.items()?.iter().filter_map(|page| Some(page.bytes()?.to_vec())).collect();
        let is_little = records.iter().map(Vec::len).sum::<usize>() < DECODE_HERE_BYTES;
        let read = move || records.iter().filter_map(|page| stamped(page)).collect::<Vec<_>>();
        let pages = if is_little { read() } else { blocking(read).await };
        let (known, now_s) = (self.known.borrow(), now_s());
        let is_good = |(generation, entry): &(u64, Entry)| {
            entry.key() == key
                && entry.times().useful_until_s() >= now_s
                && *generation <= known.latest()
                && !known.concerns(*generation, entry)
        };
        Some(pages.into_iter().filter(is_good).map(|(_, entry)| entry).collect())
    }

    /// Puts a page there that is kept here.
    pub(super) fn put(&self, entry: &Shared) {
        let Some(link) = self.link() else { return };
        if entry.times().remaining_s(now_s()) < FRESH_MIN_S || link.is_behind() {
            return;
        }
        count(&self.counts.put);
        // It is kept here, so none of the purges that are known was about it.
        let stamp = self.known.borrow().latest().to_le_bytes();
        let record = [&stamp[..], &encoded(entry)].concat();
        let useful_ms = entry.times().useful_until_s().saturating_sub(now_s()) * 1000;
        let (epoch, url) = (self.epoch.borrow(), entry.key().bytes());
        self.commands.put(&link, &epoch, url, entry.variant().hash(), &record, useful_ms);
    }

    /// The generation that the server is at, if it is in the epoch that we know.
    fn generation(&self, link: &Link, state: &Value) -> Option<u64> {
        let known = self.epoch.borrow();
        match state.items() {
            Some([epoch, generation]) if epoch.bytes() == Some(known.as_bytes()) => {
                generation.number()
            }
            _ => {
                link.give_up("it has lost what was kept there");
                None
            }
        }
    }

    /// Hears what was missed.
    async fn catch_up(&self, cache: &PageCache, link: &Link) -> Option<()> {
        let state = self.commands.state(link);
        let generation = self.generation(link, &state.wait().await.ok()?)?;
        let missing = generation.saturating_sub(self.known.borrow().latest());
        if missing == 0 {
            return Some(());
        }
        // Some more, since others may come meanwhile.
        let latest = self.commands.latest(link, missing + 64).wait().await.ok()?;
        self.hear_all(cache, latest.items()?);
        (self.known.borrow().latest() >= generation).then_some(())
    }

    fn hear_all(&self, cache: &PageCache, latest: &[Value]) {
        for message in messages(latest) {
            let next = self.known.borrow().latest() + 1;
            if message.generation > next {
                self.forget_all(cache, PurgeLog::since(message.generation - 1));
            }
            self.hear(cache, message);
        }
    }

    /// Does what a purge says, if it is the next; whether nothing is missing before it.
    fn hear(&self, cache: &PageCache, message: Message) -> bool {
        let next = self.known.borrow().latest() + 1;
        if message.generation != next {
            return message.generation < next;
        }
        if message.node != self.node {
            count(&self.counts.purges_heard);
            cache.purge_here(message.selector.clone(), PageCache::kind_of(message.is_soft));
        }
        self.known.borrow_mut().note(message.generation, message.selector);
        true
    }

    /// It is not known what was purged.
    fn forget_all(&self, cache: &PageCache, known: PurgeLog) {
        cache.purge_here(Selector::All, Purge::Hard);
        self.known.replace(known);
    }
}

/// A record with the generation before it.
fn stamped(page: &[u8]) -> Option<(u64, Entry)> {
    let (generation, record) = page.split_first_chunk()?;
    Some((u64::from_le_bytes(*generation), decoded(record)?))
}

fn messages(texts: &[Value]) -> impl Iterator<Item = Message> {
    texts.iter().filter_map(|text| Message::decoded(text.bytes()?))
}

fn told(value: &Value) -> String {
    match value {
        Value::Error(why) => why.clone(),
        _ => "it answers oddly".to_owned(),
    }
}

/// A name that nobody else has.
fn some_name() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}
