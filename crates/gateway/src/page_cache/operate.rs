//! Looking into the cache and purging it: the admin socket's `/cache/…`, and HTTP `PURGE`.
//!
//! Invariant: when a purge is answered it is in effect, also for pages that are being made.

use super::PageCache;
use super::disk::Disk;
use crate::app::App;
use crate::connection::Connection;
use crate::gateway::Gateway;
use crate::header_block::HeaderBlock;
use crate::turn::{Answered, Turn, refuse};
use outboard_log::Reason;
use outboard_page_cache::{Entry, Field, Fields, Purge, Selector, Shared};
use serde_json::{Value, json};
use std::rc::Rc;

/// For how long what was purged softly may be used while a new one is made, in seconds.
const SOFT_GRACE_S: u32 = 60;
/// Most entries that one `list` names unless it says otherwise.
const LIST_MAX: usize = 1000;

/// Whether the present request is a `PURGE`.
pub(crate) fn is_purge(connection: &mut Connection, turn: &Turn) -> bool {
    let buffers = connection.buffers();
    turn.asked.method == outboard_http1::Method::Other
        && buffers.head.method(&buffers.input) == b"PURGE"
}

/// Whether the peer says that it asks for somebody else, and is nobody whose word on that is believed:
/// then its address is not that of whoever wants the purge.
fn comes_through_an_unknown_proxy(connection: &mut Connection, turn: &Turn) -> bool {
    const TRACES: [&[u8]; 4] = [b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via"];
    let buffers = connection.buffers();
    let mut names = buffers.head.headers(&buffers.input).map(|(name, _)| name);
    turn.forwarded.client.is_none()
        && names.any(|name| TRACES.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// Answers `PURGE`: the URL that it is for, or the tags that it names in Cache-Tag, Surrogate-Key
/// or xkey. `Soft-Purge: 1` makes it soft.
pub(crate) async fn purge(
    connection: &mut Connection,
    turn: &Turn,
    app: &Rc<App>,
    cache: &PageCache,
) -> Answered {
    let is_for_others = comes_through_an_unknown_proxy(connection, turn);
    if is_for_others || !cache.purge_from.trusts(turn.client_ip(connection)) {
        return refuse(connection, turn, Some(app), Reason::PurgeRefused).await;
    }
    let buffers = connection.buffers();
    let (head, input) = (&buffers.head, &buffers.input);
    let fields: Vec<Field<'_>> = head.headers(input).collect();
    let fields = Fields(&fields);
    let is_soft = ["soft-purge", "fastly-soft-purge"].iter().any(|name| fields.contains(name));
    let tags = cache.store.borrow().tags_of(fields);
    let host = super::consult::host(turn, buffers);
    let selectors = if tags.is_empty() {
        // Who purges from beside the server often speaks plain HTTP for pages that others get by TLS.
        let path = head.origin_form(input);
        let url = |scheme: &[u8]| Selector::url(&[scheme, host, &path].concat());
        vec![url(b"http://"), url(b"https://")]
    } else {
        vec![Selector::Tags(tags.into())]
    };
    let purged: usize = selectors.into_iter().map(|one| cache.purge_now(one, is_soft)).sum();
    let mut answer = json!({ "purged": purged });
    if cache.commons.is_some() {
        answer["others_told"] = cache.settle().await.into();
    }
    let mut headers = HeaderBlock::default();
    headers.add(b"Content-Type", b"application/json").expect("a constant header");
    let body = format!("{answer}\n");
    let sent = connection.respond(turn.asked, 200, &headers, body.as_bytes()).await;
    Answered { sent, status: 200, body_bytes: body.len() as u64 }
}

/// Answers `METHOD /cache/…` of the admin socket: a status and JSON.
pub(crate) async fn operate(
    gateway: &Gateway,
    is_post: bool,
    verb: &[u8],
    query: &[u8],
) -> (u16, Value) {
    let wish = Wish::read(query);
    let generation = gateway.generation();
    let apps = generation.apps.iter().filter(|app| {
        wish.app.as_deref().is_none_or(|name| name.as_bytes() == app.config.name.as_bytes())
    });
    let caches: Vec<(&str, &PageCache)> = apps
        .filter_map(|app| Some((app.config.name.as_str(), app.page_cache.as_deref()?)))
        .collect();
    if caches.is_empty() {
        return (404, json!({"error": "no app with a page cache is meant; see page_cache"}));
    }
    match (is_post, verb) {
        (false, b"stats") => {
            let apps = caches.iter().map(|(name, cache)| ((*name).to_owned(), cache.stats()));
            (200, json!({ "apps": apps.collect::<serde_json::Map<_, _>>() }))
        }
        (false, b"list") => {
            let entries = caches.iter().flat_map(|(name, cache)| cache.list(name, &wish));
            (200, json!({ "entries": entries.take(LIST_MAX).collect::<Vec<_>>() }))
        }
        (false, b"get") => match wish.url {
            None => (400, json!({"error": "which URL? url=…"})),
            Some(_) => {
                let found = caches.iter().flat_map(|(name, cache)| cache.get(name, &wish));
                (200, json!({ "entries": found.collect::<Vec<_>>() }))
            }
        },
        (true, b"purge") => purge_all(&caches, &wish).await,
        _ => (404, json!({"error": "no such admin resource"})),
    }
}

async fn purge_all(caches: &[(&str, &PageCache)], wish: &Wish) -> (u16, Value) {
    let purged: Option<usize> = caches.iter().map(|(_, cache)| cache.purge_wished(wish)).sum();
    let Some(purged) = purged else {
        return (400, json!({"error": "what? url=…, prefix=…, tag=… or all=1"}));
    };
    let mut answer = json!({ "purged": purged });
    for (_, cache) in caches.iter().filter(|(_, cache)| cache.commons.is_some()) {
        let is_told = cache.settle().await && answer["others_told"] != json!(false);
        answer["others_told"] = is_told.into();
    }
    (200, answer)
}

/// The query of an admin request, decoded.
#[derive(Debug, Default)]
pub(super) struct Wish {
    pub(super) app: Option<String>,
    url: Option<String>,
    prefix: Option<String>,
    tags: Vec<String>,
    all: bool,
    soft: bool,
    /// How many pages an audit is to look at.
    pub(super) sample: Option<usize>,
}

impl Wish {
    pub(super) fn read(query: &[u8]) -> Self {
        let mut wish = Self::default();
        for pair in query.split(|&byte| byte == b'&') {
            let (name, value) = match pair.iter().position(|&byte| byte == b'=') {
                Some(at) => (&pair[..at], decoded(&pair[at + 1..])),
                None => (pair, String::new()),
            };
            match name {
                b"app" => wish.app = Some(value),
                b"url" => wish.url = Some(value),
                b"prefix" => wish.prefix = Some(value),
                b"tag" => wish.tags.push(value),
                b"all" => wish.all = true,
                b"soft" => wish.soft = true,
                b"sample" => wish.sample = value.parse().ok(),
                _ => {}
            }
        }
        wish
    }

    fn selects(&self, entry: &Entry) -> bool {
        let key = entry.key();
        let part = |text: &str| {
            if text.starts_with('/') { key.path_and_query() } else { key.bytes() }.to_vec()
        };
        let by_url = self.url.as_deref().is_none_or(|url| part(url) == url.as_bytes());
        let by_prefix =
            self.prefix.as_deref().is_none_or(|start| part(start).starts_with(start.as_bytes()));
        by_url && by_prefix
    }
}

/// `%XX` as a byte.
fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = (byte == b'%').then(|| tail.get(..2)).flatten();
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.unwrap_or(byte));
        rest = if value.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl PageCache {
    pub(super) fn purge_now(&self, selector: Selector, is_soft: bool) -> usize {
        self.purge(selector, Self::kind_of(is_soft))
    }

    pub(super) fn kind_of(is_soft: bool) -> Purge {
        match is_soft {
            true => Purge::Soft { now_s: super::now_s(), grace_s: SOFT_GRACE_S },
            false => Purge::Hard,
        }
    }

    /// How many entries were purged; `None` when nothing says which.
    fn purge_wished(&self, wish: &Wish) -> Option<usize> {
        let mut selectors = Vec::new();
        if wish.all {
            selectors.push(Selector::All);
        }
        selectors.extend(wish.url.as_ref().map(|url| Selector::url(url.as_bytes())));
        selectors.extend(wish.prefix.as_ref().map(|start| Selector::prefix(start.as_bytes())));
        if !wish.tags.is_empty() {
            let store = self.store.borrow();
            let tags = wish.tags.iter().map(|tag| store.tag(tag.as_bytes())).collect();
            selectors.push(Selector::Tags(tags));
        }
        if selectors.is_empty() {
            return None;
        }
        Some(selectors.into_iter().map(|one| self.purge_now(one, wish.soft)).sum())
    }

    fn stats(&self) -> Value {
        let store = self.store.borrow();
        let counts = store.counts();
        let (disk_entries, disk_bytes) = self.disk.as_ref().map_or((0, 0), Disk::size);
        json!({
            "disk_entries": disk_entries,
            "disk_bytes": disk_bytes,
            "presets": self.presets,
            "shared": self.commons.as_ref().map(|commons| commons.stats()),
            "audit": self.audit.stats(),
            "entries": store.len(),
            "used_bytes": store.used_bytes(),
            "budget_bytes": store.budget_bytes(),
            "hit": self.counts.hit.get(),
            "stale": self.counts.stale.get(),
            "miss": self.counts.miss.get(),
            "bypass": self.counts.bypass.get(),
            "waiting": self.flights.waiting(),
            "stored": counts.stored,
            "evicted": counts.evicted,
            "purged": counts.purged,
        })
    }

    fn list(&self, app: &str, wish: &Wish) -> Vec<Value> {
        let store = self.store.borrow();
        let selected = store.iter().filter(|entry| wish.selects(entry));
        selected.take(LIST_MAX).map(|entry| summary(app, entry)).collect()
    }

    fn get(&self, app: &str, wish: &Wish) -> Vec<Value> {
        let store = self.store.borrow();
        let selected = store.iter().filter(|entry| wish.selects(entry));
        selected.map(|entry| details(app, entry)).collect()
    }
}

fn summary(app: &str, entry: &Shared) -> Value {
    let now_s = super::now_s();
    json!({
        "app": app,
        "url": String::from_utf8_lossy(entry.key().bytes()),
        "status": entry.status(),
        "body_bytes": entry.plain().body.len(),
        "age_s": entry.times().age_s(now_s),
        "fresh_for_s": entry.times().remaining_s(now_s),
        "varies_by": entry.variant().names().collect::<Vec<_>>(),
        "codings": entry.coded().iter().filter_map(|one| Some(one.coding?.token())).collect::<Vec<_>>(),
    })
}

fn details(app: &str, entry: &Shared) -> Value {
    let mut value = summary(app, entry);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers: Vec<Value> =
        entry.fields().iter().map(|(name, value)| json!([text(name), text(value)])).collect();
    value["headers"] = headers.into();
    value["lifetime_from"] = format!("{:?}", entry.times().basis).into();
    value["audience"] = format!("{:?}", entry.audience()).into();
    value
}
