//! Decisions about a GET of `/a?b`, for pages of known ages.

use super::super::store::CacheRequest;
use super::*;
use crate::response_head::ResponseHead;
use crate::testing::{Site, in_loop};
use outboard_http_server::{HeaderBlock, Written};
use outboard_page_cache::Selector;
use outboard_php_pool::pool::testing::response_head;
use std::cell::RefCell;
use std::rc::Rc;

fn site() -> (Site, Rc<PageCache>) {
    let site = Site::new(&[], "[app.site.page_cache]\nmode = \"on\"\n");
    let cache = site.app().page_cache.clone().unwrap();
    (site, cache)
}

/// Stores a page with these header lines.
fn store(cache: &PageCache, lines: &[&str]) -> Shared {
    let head = ResponseHead::read(&response_head(200, lines)).expect("a valid head");
    let key = Key::new(false, b"example.test", b"/a?b");
    let fields = Fields(&[(b"host", b"example.test")]);
    let request = CacheRequest { cache, key: &key, path: b"/a", fields, request_s: now_s() };
    request.store(&head, b"page", cache.purge_epoch()).expect("it is stored")
}

/// The decision about a request with these header lines, in a few words.
async fn decided(site: &Site, lines: &str, has_waited: bool, tier: SecondTier) -> String {
    let (app, decision) = (site.app(), Rc::<RefCell<String>>::default());
    let to = decision.clone();
    site.handled(lines, async move |request, response| -> Written {
        let cache = app.page_cache.as_ref().unwrap();
        to.replace(words(lookup(cache, request, &app, has_waited, &tier)));
        response.respond(204, &HeaderBlock::default(), b"").await
    })
    .await;
    decision.take()
}

async fn looked_up(site: &Site, lines: &str) -> String {
    decided(site, lines, false, SecondTier::Unknown).await
}

fn words(decision: Lookup) -> String {
    match decision {
        Lookup::Serve { status, refresh, .. } => {
            let status = match status {
                CacheStatus::Hit { .. } => "hit",
                CacheStatus::Stale { .. } => "stale",
                CacheStatus::Collapsed { .. } => "collapsed",
                _ => "another status",
            };
            format!("{status}{}", if refresh.is_some() { ", refreshed" } else { "" })
        }
        Lookup::SecondTier { .. } => "second tier".to_owned(),
        Lookup::Bypass(reason) => format!("bypass: {}", reason.code()),
        Lookup::OnlyIfCached => "only if cached".to_owned(),
        Lookup::Miss(miss) => {
            let others = if miss.is_shared { "for all" } else { "for one" };
            let on_error = if miss.stale_on_error().is_some() { ", or stale" } else { "" };
            format!("{:?} {others}{on_error}", miss.reason)
        }
    }
}

#[test]
fn a_fresh_page_is_a_hit_or_was_waited_for() {
    in_loop(async {
        let (site, cache) = site();
        assert_eq!(looked_up(&site, "").await, "Uri for all");
        store(&cache, &["Cache-Control: max-age=60"]);
        assert_eq!(looked_up(&site, "").await, "hit");
        assert_eq!(decided(&site, "", true, SecondTier::Unknown).await, "collapsed");
        // An application may take it for its host, although the client is no trusted proxy.
        assert_eq!(looked_up(&site, "X-Forwarded-Host: other.test\r\n").await, "Vary for all");
    });
}

#[test]
fn a_client_can_require_a_new_page_but_not_after_its_wait() {
    in_loop(async {
        let (site, cache) = site();
        store(&cache, &["Cache-Control: max-age=60"]);
        let lines = "Cache-Control: no-cache\r\n";
        assert_eq!(looked_up(&site, lines).await, "Request for all, or stale");
        assert_eq!(decided(&site, lines, true, SecondTier::Unknown).await, "collapsed");
    });
}

#[test]
fn a_stale_page_is_refreshed_or_rendered_first() {
    in_loop(async {
        let (site, cache) = site();
        store(&cache, &["Cache-Control: max-age=60, stale-while-revalidate=60"]);
        cache.purge(Selector::All, true);
        assert_eq!(looked_up(&site, "").await, "stale, refreshed");
        store(&cache, &["Cache-Control: max-age=60, must-revalidate"]);
        cache.purge(Selector::All, true);
        assert_eq!(looked_up(&site, "").await, "Stale for all");
    });
}

#[test]
fn only_if_cached_is_for_pages_that_can_be_used() {
    in_loop(async {
        let (site, cache) = site();
        let lines = "Cache-Control: only-if-cached\r\n";
        assert_eq!(looked_up(&site, lines).await, "only if cached");
        store(&cache, &["Cache-Control: max-age=60, must-revalidate"]);
        assert_eq!(looked_up(&site, lines).await, "hit");
        cache.purge(Selector::All, true);
        assert_eq!(looked_up(&site, lines).await, "only if cached");
    });
}

#[test]
fn a_page_that_was_loaded_is_used_without_room_in_memory() {
    in_loop(async {
        let (site, cache) = site();
        let german = store(&cache, &["Cache-Control: max-age=60", "Vary: Accept-Language"]);
        let plain = store(&cache, &["Cache-Control: max-age=60"]);
        cache.purge(Selector::All, false);
        assert_eq!(looked_up(&site, "").await, "Uri for all");
        let loaded = |entries: &[&Shared]| {
            SecondTier::Loaded(entries.iter().map(|one| (*one).clone()).collect())
        };
        let lines = "Accept-Language: en\r\n";
        assert_eq!(decided(&site, "", false, loaded(&[])).await, "Uri for all");
        assert_eq!(decided(&site, lines, false, loaded(&[&german])).await, "Uri for all");
        assert_eq!(decided(&site, lines, false, loaded(&[&german, &plain])).await, "hit");
    });
}

#[test]
fn nobody_waits_for_a_page_that_may_be_personal() {
    in_loop(async {
        let (site, cache) = site();
        for (lines, expected) in [
            ("Cookie: wordpress_logged_in_x=1\r\n", "bypass: login_cookie"),
            ("If-Match: \"a\"\r\n", "bypass: precondition"),
            ("Cookie: unknown=1\r\n", "Uri for one"),
            ("X-Api-Key: 1\r\n", "Uri for one"),
            ("Authorization: Basic eDp5\r\n", "Uri for one"),
        ] {
            assert_eq!(looked_up(&site, lines).await, expected, "{lines}");
        }
        // A page that others may get by its own words is for such requests as well.
        store(&cache, &["Cache-Control: public, max-age=60"]);
        assert_eq!(looked_up(&site, "Cookie: unknown=1\r\n").await, "hit");
        assert_eq!(looked_up(&site, "Authorization: Basic eDp5\r\n").await, "hit");
    });
}
