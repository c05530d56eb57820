//! The page cache of an app: what is answered from it, what is kept in it, and what passes it by.
//!
//! Called by the turn for every request that leads to a script or to another server. The rules and the store are
//! `outboard_page_cache`'s; here they meet connections, workers and time. Invariants: whatever the
//! cache does not answer is answered as without it; a page is kept only if it came whole; each
//! answer says what the cache had to do with it.
//!
//! A cache belongs to the generation that its pages were made by: a reload begins with an empty
//! one, so that no page of an old release outlives it.

pub(crate) mod admin;
mod audit;
pub(crate) mod commons;
mod compressor;
mod consult;
mod disk;
mod flights;
mod http_purge;
mod keeping;
mod making;
mod purges;
mod serve;

use crate::app::App;
use crate::generation::Logs;
use crate::origin::Origin;
use crate::php_head::PhpHead;
use crate::request::{RequestContext, ResponseSummary, refuse};
use audit::Audit;
use commons::Commons;
use compressor::Compressor;
use consult::{Behind, Consulted};
use disk::Disk;
use flights::{Flight, Flights, Part};
use making::Making;
use outboard_config as config;
use outboard_http_server::Connection;
use outboard_log::Reason;
use outboard_log::Wall;
use outboard_page_cache::{
    self as rules, BypassRules, CacheStatus, Field, Fields, Key, NamePattern, Policy, Preset,
    Purge, Response, Selector, Shared, Store, Target,
};
use outboard_reactor::{now_ms, spawn, with_deadline};
use outboard_upstream::Client;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::task::Poll;

pub(crate) use audit::audit;
pub(crate) use http_purge::{is_purge, purge};
pub(crate) use purges::Purges;

/// What an app keeps.
#[derive(Debug)]
pub(crate) struct PageCache {
    policy: Policy,
    guard: BypassRules,
    presets: Vec<&'static str>,
    compresses: bool,
    wait_ms: u64,
    purge_from: config::Forwarding,
    /// Whether a page can be made anew without the connection that asked for it.
    refreshes_behind: bool,
    store: RefCell<Store>,
    flights: Rc<Flights>,
    compressor: Compressor,
    disk: Option<Disk>,
    commons: Option<Rc<Commons>>,
    audit: Audit,
    counts: Counts,
    /// The cache of the same app after a reload.
    successor: RefCell<Weak<Self>>,
}

/// Answers by what the cache had to do with them.
#[derive(Debug, Default)]
struct Counts {
    hit: Cell<u64>,
    stale: Cell<u64>,
    miss: Cell<u64>,
    bypass: Cell<u64>,
}

/// Seconds since 1970.
fn now_s() -> u64 {
    Wall::now().unix_s()
}

impl PageCache {
    /// The cache that is configured for an app, empty; on disk is what was there if `is_first`.
    ///
    /// # Errors
    /// The folder on disk cannot be used.
    pub(crate) fn open(
        app: &config::App,
        is_first: bool,
        upstream: &Rc<Client>,
        logs: &Rc<Logs>,
    ) -> io::Result<Option<Rc<Self>>> {
        let Some(configured) = &app.page_cache else { return Ok(None) };
        let presets: Vec<&'static Preset> = match &configured.presets {
            None => Preset::recognised(|file| app.root.join(file).exists()).collect(),
            Some(names) => {
                let named = names.iter().filter_map(|name| Preset::named(name));
                Preset::named("generic").into_iter().chain(named).collect()
            }
        };
        let mut guard = BypassRules::of(presets.iter().copied());
        let patterns = |texts: &[String]| -> Vec<NamePattern> {
            texts.iter().map(|text| NamePattern::new(text)).collect()
        };
        guard.cookies.login.extend(patterns(&configured.login_cookies));
        guard.cookies.ignored.extend(patterns(&configured.ignored_cookies));
        guard.ignored_fields.extend(patterns(&configured.ignored_headers));
        guard.bypass_paths.extend(patterns(&configured.bypass_paths));
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let policy = Policy {
            default_ttl_s: configured.default_ttl_s,
            // Of a page, Last-Modified says little: with it alone a page is silent.
            heuristic_max_s: 0,
            stale_while_revalidate_s: configured.stale_while_revalidate_s,
            stale_if_error_s: configured.stale_if_error_s,
            honors_client_cache_control: configured.honors_client_cache_control,
            body_max_bytes: bytes(configured.max_body_bytes),
            ..Policy::STANDARD
        };
        let shared = configured.shared.as_ref();
        // What was purged since is known to the others alone.
        let disk = Disk::open(app, is_first && shared.is_none(), logs)?;
        let commons = shared.map(|shared| Commons::new(shared, &app.name, upstream, logs));
        let cache = Rc::new(Self {
            policy,
            guard,
            presets: presets.iter().map(|preset| preset.name).collect(),
            compresses: configured.compresses,
            wait_ms: configured.lock_timeout_ms,
            purge_from: configured.purge_from.clone(),
            refreshes_behind: app.prefetch.is_empty(),
            store: RefCell::new(Store::new(bytes(configured.max_memory_bytes))),
            flights: Rc::default(),
            compressor: Compressor::default(),
            disk,
            commons: commons.clone(),
            audit: Audit::of(configured.audit_ppm),
            counts: Counts::default(),
            successor: RefCell::default(),
        });
        if let Some(commons) = commons {
            spawn(commons.run(Rc::downgrade(&cache)));
        }
        Ok(Some(cache))
    }

    /// How often it had what to do with an answer, since the generation began.
    pub(crate) fn answers(&self) -> [(&'static str, u64); 4] {
        let Counts { hit, stale, miss, bypass } = &self.counts;
        [("hit", hit.get()), ("stale", stale.get()), ("miss", miss.get()), ("bypass", bypass.get())]
    }

    /// How many answers are kept, and the memory that they take in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let store = self.store.borrow();
        (store.len(), store.used_bytes())
    }

    /// Why its pages are not shared at the moment, if they are to be.
    pub(crate) fn unshared_because(&self) -> Option<String> {
        self.commons.as_ref()?.absence()
    }

    fn count(&self, outcome: CacheStatus) {
        let count = match outcome.word() {
            "HIT" => &self.counts.hit,
            "STALE" => &self.counts.stale,
            "MISS" => &self.counts.miss,
            _ => &self.counts.bypass,
        };
        count.set(count.get() + 1);
    }
}

/// Answers a request that leads to a script.
pub(crate) async fn answer(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    cache: &Rc<PageCache>,
    origin: Origin,
) -> ResponseSummary {
    let until_ms = now_ms() + cache.wait_ms;
    let (mut has_waited, mut behind) = (false, Behind::Unknown);
    loop {
        let wanted = match cache.consult(connection, ctx, app, has_waited, &behind) {
            Consulted::Serve { entry, outcome, refresh } => {
                if let Some(key) = refresh {
                    cache.refresh_behind(connection, ctx, app, &origin, key, &entry);
                }
                cache.count(outcome);
                cache.note_hit(connection, ctx, app, &origin, &entry);
                return serve::entry(connection, ctx, &entry, outcome).await;
            }
            Consulted::Behind { key, file } => {
                match cache.flights.join(&key) {
                    Part::Lead(_lead) => {
                        behind = Behind::Found(cache.look_behind(&key, file).await);
                    }
                    // Whoever flies has it read, or made.
                    Part::Wait(flight) => match wait(connection, &flight, until_ms).await {
                        Waited::Over => {}
                        Waited::TooLong => behind = Behind::Found(Vec::new()),
                        Waited::Gone => {
                            return refuse(connection, ctx, Some(app), Reason::ClientGone).await;
                        }
                    },
                    Part::Alone => behind = Behind::Found(Vec::new()),
                }
                continue;
            }
            Consulted::Bypass(reason) => {
                return pass(connection, ctx, app, cache, &origin, reason).await;
            }
            Consulted::Nothing => {
                return refuse(connection, ctx, Some(app), Reason::NotCached).await;
            }
            Consulted::Make(wanted) => wanted,
        };
        let part = if wanted.is_shared { cache.flights.join(&wanted.key) } else { Part::Alone };
        let lead = match part {
            Part::Lead(lead) => Some(lead),
            Part::Alone => None,
            Part::Wait(flight) => match wait(connection, &flight, until_ms).await {
                Waited::Over => {
                    has_waited = true;
                    continue;
                }
                Waited::Gone => {
                    return refuse(connection, ctx, Some(app), Reason::ClientGone).await;
                }
                Waited::TooLong => match cache.stand_in(&wanted) {
                    Some((entry, outcome)) => {
                        cache.count(outcome);
                        return serve::entry(connection, ctx, &entry, outcome).await;
                    }
                    None => None,
                },
            },
        };
        let making = Making::new(ctx, app, cache, &origin, wanted);
        return making.answer(connection, lead).await;
    }
}

/// How waiting for somebody else's page ended.
enum Waited {
    Over,
    TooLong,
    Gone,
}

async fn wait(connection: &Connection, flight: &Flight, until_ms: u64) -> Waited {
    let over = poll_fn(|_| {
        if flight.poll_over().is_ready() {
            return Poll::Ready(Waited::Over);
        }
        connection.poll_gone().map(|()| Waited::Gone)
    });
    with_deadline(until_ms, over).await.unwrap_or(Waited::TooLong)
}

impl PageCache {
    /// Looks for a page on disk, or else among what is shared, and puts it into memory.
    async fn look_behind(&self, key: &Key, file: Option<u64>) -> Vec<Shared> {
        if let Some(file) = file
            && let Some(entry) = self.unshelve(key, file).await
        {
            return vec![entry];
        }
        let Some(commons) = &self.commons else { return Vec::new() };
        let began = self.store.borrow().purge_epoch();
        let entries = commons.take(self, key).await;
        let mut store = self.store.borrow_mut();
        let now_s = now_s();
        entries.into_iter().filter_map(|entry| store.insert(entry, began, now_s).ok()).collect()
    }

    /// Waits until the purges so far are known to all with whom pages are shared; false if they
    /// are not yet.
    async fn settle(&self) -> bool {
        match &self.commons {
            Some(commons) => commons.settle().await,
            None => true,
        }
    }

    fn forget(&self, key: &Key) {
        self.purge(Selector::Url(key.bytes().to_vec()), Purge::Hard);
    }

    /// Purges here, and tells those with whom pages are shared; gives how many entries memory had.
    fn purge(&self, selector: Selector, purge: Purge) -> usize {
        if let Some(commons) = &self.commons
            && self.successor.borrow().strong_count() == 0
        {
            commons.broadcast(&selector, matches!(purge, Purge::Soft { .. }));
        }
        self.purge_here(selector, purge)
    }

    /// Purges in memory and on disk; gives how many entries memory had.
    fn purge_here(&self, selector: Selector, purge: Purge) -> usize {
        if let Some(disk) = &self.disk {
            disk.purge(&selector);
        }
        self.store.borrow_mut().purge(selector, purge)
    }
}

/// Has a request answered without the cache, and forgets what it made invalid.
async fn pass(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    cache: &PageCache,
    origin: &Origin,
    reason: rules::Reason,
) -> ResponseSummary {
    let mut begun = match origin.begin(connection, ctx, app, None).await {
        Ok(begun) => begun,
        Err(reason) => return refuse(connection, ctx, Some(app), reason).await,
    };
    invalidate(connection, ctx, cache, begun.head());
    let outcome = CacheStatus::Bypass(reason);
    cache.count(outcome);
    outcome.write(&mut begun.head_mut().headers.bytes);
    begun.send(connection, ctx, app, origin).await
}

/// RFC 9111 4.4.
fn invalidate(
    connection: &mut Connection,
    ctx: &RequestContext,
    cache: &PageCache,
    head: &PhpHead,
) {
    if !rules::is_unsafe(ctx.request.method) {
        return;
    }
    let buffers = connection.buffers();
    let (request, input) = (&buffers.head, &buffers.input);
    let host = consult::host(ctx, buffers);
    let https = ctx.forwarded.https;
    let path_and_query = request.origin_form(input);
    let scheme: &[u8] = if https { b"https" } else { b"http" };
    let target = Target { scheme, authority: host, path_and_query: &path_and_query };
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = Response { status: head.status, fields: Fields(&fields) };
    for path in rules::invalidated(ctx.request.method, target, response) {
        cache.forget(&Key::new(https, host, &path));
    }
}

#[cfg(test)]
mod tests {
    use outboard_config::PRESET_NAMES;
    use outboard_page_cache::PRESETS;

    #[test]
    fn the_configuration_knows_the_presets_by_their_names() {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names[0], "generic");
        assert_eq!(names[1..], PRESET_NAMES);
    }
}
