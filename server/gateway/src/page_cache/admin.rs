//! The page caches' part of the admin API: statistics, contents, purges, audits.
//!
//! Called by [`crate::admin`]. Invariant: when the response to a purge is sent, the purge is in
//! effect, also for pages that are being rendered.

use crate::admin_reply::Refusal;
use crate::app::App;
use crate::gateway::Gateway;
use outboard_admin_api::cache::{
    Audit, Audited, CacheStats, DetailedEntry, Details, Entries, Entry, Get, List, Purge, Purged,
    Stats,
};
use outboard_page_cache::{self as rules, PageCache, Selector, now_s};
use std::rc::Rc;

/// Most entries of one reply.
const LIST_MAX: usize = 1000;

/// The apps with a page cache; only `name` if it is given.
fn apps(gateway: &Gateway, name: Option<&String>) -> Result<Vec<Rc<App>>, Refusal> {
    let generation = gateway.generation();
    let named = |app: &&Rc<App>| name.is_none_or(|name| *name == app.config.name);
    let apps = generation.apps.iter().filter(named).filter(|app| app.page_cache.is_some());
    let apps: Vec<Rc<App>> = apps.cloned().collect();
    match apps.is_empty() {
        true => Err(Refusal::new(404, "no such app with a page cache; see page_cache")),
        false => Ok(apps),
    }
}

fn caches(apps: &[Rc<App>]) -> impl Iterator<Item = (&str, &PageCache)> {
    apps.iter().filter_map(|app| Some((app.config.name.as_str(), app.page_cache.as_deref()?)))
}

pub(crate) fn stats(gateway: &Gateway, stats: &Stats) -> Result<CacheStats, Refusal> {
    let apps = apps(gateway, stats.app.as_ref())?;
    let each = caches(&apps).map(|(name, cache)| (name.to_owned(), cache.stats()));
    Ok(CacheStats { apps: each.collect() })
}

pub(crate) fn list(gateway: &Gateway, list: &List) -> Result<Entries, Refusal> {
    let apps = apps(gateway, list.app.as_ref())?;
    let mut entries = Vec::new();
    for (name, cache) in caches(&apps) {
        let store = cache.memory();
        let selected = store.iter().filter(|entry| match &list.prefix {
            Some(prefix) => part(entry, prefix).starts_with(prefix.as_bytes()),
            None => true,
        });
        let room = LIST_MAX - entries.len();
        entries.extend(selected.take(room).map(|entry| summary(name, entry)));
    }
    Ok(Entries { entries })
}

pub(crate) fn get(gateway: &Gateway, get: &Get) -> Result<Details, Refusal> {
    let Some(url) = &get.url else {
        return Err(Refusal::new(400, "the parameter url is missing"));
    };
    let apps = apps(gateway, get.app.as_ref())?;
    let mut entries = Vec::new();
    for (name, cache) in caches(&apps) {
        let store = cache.memory();
        let selected = store.iter().filter(|entry| part(entry, url) == url.as_bytes());
        entries.extend(selected.map(|entry| details(name, entry)));
    }
    Ok(Details { entries })
}

pub(crate) async fn purge(gateway: &Gateway, purge: &Purge) -> Result<Purged, Refusal> {
    let apps = apps(gateway, purge.app.as_ref())?;
    let (mut purged, mut confirmed) = (0, None);
    for (_, cache) in caches(&apps) {
        let selectors = requested(purge);
        if selectors.is_empty() {
            return Err(Refusal::new(
                400,
                "one of the parameters url, prefix, tag and all is needed",
            ));
        }
        purged += selectors.into_iter().map(|one| cache.purge(one, purge.soft)).sum::<usize>();
    }
    for (_, cache) in caches(&apps).filter(|(_, cache)| cache.has_shared_tier()) {
        let is_confirmed = cache.settle().await;
        confirmed = Some(is_confirmed && confirmed != Some(false));
    }
    Ok(Purged { purged, confirmed })
}

pub(crate) async fn audit(gateway: &Gateway, audit: &Audit) -> Audited {
    super::audit::examine(gateway, audit).await
}

/// The part to compare with `text`: path and query if it starts with a slash, otherwise the URL.
fn part<'e>(entry: &'e rules::Entry, text: &str) -> &'e [u8] {
    match text.starts_with('/') {
        true => entry.key().path_and_query(),
        false => entry.key().bytes(),
    }
}

fn requested(purge: &Purge) -> Vec<Selector> {
    let mut selectors = Vec::new();
    if purge.all {
        selectors.push(Selector::All);
    }
    selectors.extend(purge.url.as_ref().map(|url| Selector::url(url.as_bytes())));
    selectors.extend(purge.prefix.as_ref().map(|start| Selector::prefix(start.as_bytes())));
    if !purge.tag.is_empty() {
        selectors.push(Selector::tags(purge.tag.iter().map(String::as_bytes)));
    }
    selectors
}

fn summary(app: &str, entry: &rules::Entry) -> Entry {
    let now_s = now_s();
    let codings = entry.coded().iter().filter_map(|one| Some(one.coding?.token().to_owned()));
    Entry {
        app: app.to_owned(),
        url: text(entry.key().bytes()),
        status: entry.status(),
        body_bytes: entry.plain().body.len(),
        age_s: entry.times().age_s(now_s),
        fresh_for_s: entry.times().remaining_s(now_s),
        varies_by: entry.variant().names().map(|name| name.to_owned()).collect(),
        codings: codings.collect(),
    }
}

fn details(app: &str, entry: &rules::Entry) -> DetailedEntry {
    DetailedEntry {
        entry: summary(app, entry),
        headers: entry.fields().iter().map(|(name, value)| (text(name), text(value))).collect(),
        lifetime_from: format!("{:?}", entry.times().basis),
        audience: format!("{:?}", entry.audience()),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
