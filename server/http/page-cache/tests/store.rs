//! The store: lookup, eviction and purges.

mod support;

use outboard_http_semantics::Coding;
use outboard_page_cache::{
    Entry, Fields, Found, Key, Purge, Reason, Reuse, Selector, Store, Stored, reuse, tags_of,
};
use std::sync::Arc;
use support::{NOW_S, facts, lines, stored};

fn key(path: &str) -> Key {
    Key::new(false, b"A.test:80", path.as_bytes())
}

fn entry(path: &str, request: &str, response: &str, size: usize) -> Entry {
    let storable = stored(request, response).unwrap();
    let fields = lines(response);
    let tags = tags_of(Fields(&fields));
    let body = vec![b'x'; size].into();
    Entry::new(key(path), 200, Fields(&fields), body, storable, tags)
}

fn put(store: &mut Store, path: &str, response: &str) -> Arc<Stored> {
    let entry = entry(path, "", response, 100);
    store.insert(entry, store.purge_epoch(), NOW_S).unwrap()
}

fn has(store: &Store, path: &str) -> bool {
    matches!(store.find(&key(path), |_| true), Found::Entry(_))
}

const KEEP: &str = "Cache-Control: max-age=60";

#[test]
fn an_entry_is_found_only_under_its_url() {
    let mut store = Store::new(1 << 20);
    put(&mut store, "/a?b", KEEP);
    assert!(has(&store, "/a?b"));
    for other in ["/a", "/a?c", "/a?b&", "/"] {
        assert!(matches!(store.find(&key(other), |_| true), Found::Nothing), "{other}");
    }
    let https = Key::new(true, b"a.test", b"/a?b");
    assert!(matches!(store.find(&https, |_| true), Found::Nothing));
    assert_eq!(key("/a").bytes(), b"http://a.test/a");
    assert_eq!(Key::new(true, b"a.test:80", b"/a").bytes(), b"https://a.test:80/a");
}

#[test]
fn variants_coexist_and_are_replaced_one_by_one() {
    let mut store = Store::new(1 << 20);
    let response = "Cache-Control: max-age=60\nVary: X";
    for (request, size) in [("X: 1", 1), ("X: 2", 2), ("X: 1", 3)] {
        let entry = entry("/", request, response, size);
        store.insert(entry, store.purge_epoch(), NOW_S).unwrap();
    }
    assert_eq!(store.len(), 2);
    let rules = Default::default();
    let size_for = |request: &str| {
        let request = lines(request);
        match store.find(&key("/"), |one| one.variant().matches(Fields(&request), false, &rules)) {
            Found::Entry(entry) => Some(entry.plain().body.len()),
            Found::OtherVariants => None,
            Found::Nothing => unreachable!("two variants were stored"),
        }
    };
    assert_eq!(size_for("X: 1"), Some(3));
    assert_eq!(size_for("X: 2"), Some(2));
    assert_eq!(size_for("X: 3"), None);
}

#[test]
fn section_4_of_several_that_match_the_latest_is_used() {
    let mut store = Store::new(1 << 20);
    for (vary, date) in [("A", "07"), ("B", "09"), ("C", "08")] {
        let response = format!(
            "Cache-Control: max-age=9999999999\nVary: {vary}\nDate: Sun, 06 Nov 1994 08:49:{date} GMT"
        );
        put(&mut store, "/", &response);
    }
    let Found::Entry(found) = store.find(&key("/"), |_| true) else { panic!("nothing found") };
    assert_eq!(found.variant().names().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn the_number_of_variants_is_bounded() {
    let mut store = Store::new(16 << 20);
    for number in 0..1000 {
        let request = format!("X: {number}");
        let entry = entry("/", &request, "Cache-Control: max-age=60\nVary: X", 10);
        store.insert(entry, store.purge_epoch(), NOW_S).unwrap();
    }
    assert_eq!(store.len(), 64);
}

#[test]
fn purges_remove_only_the_selected_entries() {
    let urls = ["/", "/news/1", "/news/2?p=1", "/newsletter", "/about"];
    for (selector, gone) in [
        (Selector::url(b"/news/1"), vec!["/news/1"]),
        (Selector::url(b"http://A.TEST/news/2?p=1"), vec!["/news/2?p=1"]),
        (Selector::url(b"http://a.test:80"), vec!["/"]),
        (Selector::url(b"https://a.test/news/1"), vec![]),
        (Selector::url(b"http://b.test/"), vec![]),
        (Selector::prefix(b"/news/"), vec!["/news/1", "/news/2?p=1"]),
        (Selector::prefix(b"http://a.test/news"), vec!["/news/1", "/news/2?p=1", "/newsletter"]),
        (Selector::prefix(b"http://a.test"), urls.to_vec()),
        (Selector::prefix(b"http://b.test"), vec![]),
        (Selector::prefix(b"https:"), vec![]),
        (Selector::All, urls.to_vec()),
    ] {
        let mut store = Store::new(1 << 20);
        for url in urls {
            put(&mut store, url, KEEP);
        }
        assert_eq!(store.purge(selector.clone(), Purge::Hard), gone.len(), "{selector:?}");
        for url in urls {
            assert_eq!(has(&store, url), !gone.contains(&url), "{selector:?} {url}");
        }
    }
}

#[test]
fn a_purge_selects_tags_of_all_three_fields() {
    let mut store = Store::new(1 << 20);
    for (path, tags) in [
        ("/1", "Cache-Tag: home, post-1"),
        ("/2", "Surrogate-Key: post-1 post-2"),
        ("/3", "xkey: post-2\nxkey: post-3"),
        ("/4", "Cache-Tag: post"),
    ] {
        put(&mut store, path, &format!("{KEEP}\n{tags}"));
    }
    let tag = |name: &[u8]| Selector::tags([name]);
    assert_eq!(store.purge(tag(b"post-1"), Purge::Hard), 2);
    assert_eq!(store.purge(tag(b"post-3"), Purge::Hard), 1);
    assert!(has(&store, "/4"));
    assert_eq!(store.len(), 1);
}

#[test]
fn replaced_and_evicted_entries_lose_their_tags() {
    let mut store = Store::new(1 << 20);
    let tag = |name: &[u8]| Selector::tags([name]);
    put(&mut store, "/1", &format!("{KEEP}\nCache-Tag: old"));
    put(&mut store, "/1", &format!("{KEEP}\nCache-Tag: new"));
    assert_eq!(store.purge(tag(b"old"), Purge::Hard), 0);
    let soft = Purge::Soft { now_s: NOW_S, grace_s: 60 };
    assert_eq!(store.purge(tag(b"new"), soft), 1);
    assert_eq!(store.purge(tag(b"new"), Purge::Hard), 1, "a soft purge leaves it in the index");
    assert_eq!(store.purge(tag(b"new"), Purge::Hard), 0);
    assert_eq!(store.purge(Selector::All, Purge::Hard), 0);
}

#[test]
fn repeated_purges_do_not_displace_others_from_the_log() {
    let mut store = Store::new(1 << 20);
    let began = store.purge_epoch();
    for _ in 0..10_000 {
        store.purge(Selector::url(b"/other"), Purge::Hard);
    }
    let made = entry("/page", "", KEEP, 10);
    assert!(store.insert(made, began, NOW_S).is_ok());
}

#[test]
fn a_soft_purge_leaves_stale_entries_to_serve() {
    let mut store = Store::new(1 << 20);
    put(&mut store, "/", KEEP);
    put(&mut store, "/strict", "Cache-Control: max-age=60, must-revalidate");
    let soft = Purge::Soft { now_s: NOW_S + 10, grace_s: 30 };
    assert_eq!(store.purge(Selector::All, soft), 2);
    let request = lines("");
    let directives = facts(&request).directives;
    let state = |path: &str, after_s: u64| match store.find(&key(path), |_| true) {
        Found::Entry(entry) => reuse(entry.times(), &directives, NOW_S + after_s),
        _ => panic!("a soft purge keeps entries"),
    };
    assert!(matches!(state("/", 10), Reuse::Stale { refresh: true, .. }));
    assert!(matches!(state("/", 39), Reuse::Stale { refresh: true, .. }));
    assert!(matches!(state("/", 40), Reuse::Validate(_)));
    assert!(matches!(state("/strict", 10), Reuse::Validate(_)));
}

#[test]
fn a_page_purged_during_its_rendering_is_not_stored() {
    for (selector, is_stored) in [
        (Selector::All, false),
        (Selector::url(b"/page"), false),
        (Selector::prefix(b"/pa"), false),
        (Selector::url(b"/other"), true),
    ] {
        let mut store = Store::new(1 << 20);
        let began = store.purge_epoch();
        store.purge(selector.clone(), Purge::Hard);
        let made = entry("/page", "", KEEP, 10);
        let outcome = store.insert(made.clone(), began, NOW_S).map(|_| ());
        assert_eq!(outcome.is_ok(), is_stored, "{selector:?}");
        assert_eq!(outcome.err(), (!is_stored).then_some(Reason::PurgedMeanwhile));
        // A rendering that begins after the purge is stored.
        assert!(store.insert(made, store.purge_epoch(), NOW_S).is_ok());
    }
}

#[test]
fn a_tag_purge_covers_pages_being_rendered() {
    let mut store = Store::new(1 << 20);
    let began = store.purge_epoch();
    store.purge(Selector::tags([&b"post-1"[..]]), Purge::Soft { now_s: NOW_S, grace_s: 10 });
    let made = entry("/", "", &format!("{KEEP}\nCache-Tag: post-1"), 10);
    assert_eq!(store.insert(made, began, NOW_S).err(), Some(Reason::PurgedMeanwhile));
}

#[test]
fn a_rendering_older_than_the_purge_log_is_not_stored() {
    let mut store = Store::new(1 << 20);
    let began = store.purge_epoch();
    for number in 0..5000 {
        store.purge(Selector::url(format!("/{number}").as_bytes()), Purge::Hard);
    }
    let made = entry("/page", "", KEEP, 10);
    assert_eq!(store.insert(made, began, NOW_S).err(), Some(Reason::PurgedMeanwhile));
}

#[test]
fn a_flood_of_urls_does_not_evict_used_entries() {
    let mut store = Store::new(1 << 20);
    put(&mut store, "/hot", KEEP);
    for number in 0..20_000 {
        assert!(has(&store, "/hot"), "after {number}");
        put(&mut store, &format!("/flood/{number}"), KEEP);
        assert!(store.used_bytes() <= store.budget_bytes());
    }
    assert!(store.counts().evicted > 10_000);
}

#[test]
fn an_entry_that_returns_after_eviction_stays_longer() {
    let mut store = Store::new(1 << 20);
    put(&mut store, "/back", KEEP);
    let mut number = 0;
    while has_quietly(&store, "/back") {
        put(&mut store, &format!("/{number}"), KEEP);
        number += 1;
    }
    put(&mut store, "/back", KEEP);
    // The entry is in the main queue now, which the flood through the small queue does not reach.
    for more in 0..number / 2 {
        put(&mut store, &format!("/more/{more}"), KEEP);
    }
    assert!(has_quietly(&store, "/back"));
}

fn has_quietly(store: &Store, path: &str) -> bool {
    store.iter().any(|entry| *entry.key() == key(path))
}

#[test]
fn an_entry_too_large_for_the_budget_is_refused() {
    let mut store = Store::new(1 << 20);
    put(&mut store, "/small", KEEP);
    let large = entry("/large", "", KEEP, 300_000);
    assert_eq!(store.insert(large, store.purge_epoch(), NOW_S).err(), Some(Reason::TooLarge));
    assert!(has(&store, "/small"));
}

#[test]
fn a_smaller_budget_evicts_the_excess() {
    let mut store = Store::new(4 << 20);
    for number in 0..2000 {
        put(&mut store, &format!("/{number}"), KEEP);
    }
    store.set_budget(256 << 10);
    assert!(store.used_bytes() <= 256 << 10);
    assert!(store.len() < 1000);
}

#[test]
fn codings_are_stored_with_heads_of_their_own() {
    let mut store = Store::new(1 << 20);
    let response = "Cache-Control: max-age=60\nContent-Type: text/html\nETag: \"a\"\nVary: X";
    let plain = entry("/", "", response, 2000);
    let plain = store.insert(plain, store.purge_epoch(), NOW_S).unwrap();
    assert!(plain.may_compress());
    let coded = plain.with_coding(Coding::Gzip, Arc::from(&b"zip"[..]));
    let coded = coded.with_coding(Coding::Brotli, Arc::from(&b"br"[..]));
    let entry = store.replace(&plain, coded).unwrap();
    assert!(store.replace(&plain, (**plain).clone()).is_none(), "it was replaced meanwhile");

    let text = |accept: &str| {
        let one = entry.representation(Some(accept.as_bytes()));
        (one.coding, String::from_utf8(one.head.to_vec()).unwrap())
    };
    let (coding, head) = text("gzip, br");
    assert_eq!(coding, Some(Coding::Brotli));
    assert!(head.contains("Content-Encoding: br\r\n"), "{head}");
    assert!(head.contains("ETag: W/\"a\"\r\n"), "{head}");
    assert!(head.contains("Vary: X, Accept-Encoding\r\n"), "{head}");
    let (coding, head) = text("identity");
    assert_eq!(coding, None);
    assert!(head.contains("ETag: \"a\"\r\n"), "{head}");
    assert!(head.contains("Vary: X, Accept-Encoding\r\n"), "{head}");
    assert!(!head.contains("Content-Encoding"), "{head}");
}

#[test]
fn vary_names_the_coding_only_where_there_is_a_choice() {
    let text = "Cache-Control: max-age=60\nContent-Type: text/html";
    for (response, bytes, expected) in [
        (text, 1024, true),
        (text, 1023, false),
        ("Cache-Control: max-age=4\nContent-Type: text/html", 1024, false),
        ("Cache-Control: max-age=60\nContent-Type: image/png", 1024, false),
        ("Cache-Control: max-age=60, no-transform\nContent-Type: text/html", 1024, false),
        ("Cache-Control: max-age=60", 1024, false),
    ] {
        let entry = entry("/", "", response, bytes);
        let says = Fields(&entry.fields()).first("vary").is_some();
        assert_eq!((says, entry.may_compress()), (expected, expected), "{response} {bytes}");
    }
}

#[test]
fn a_soft_purge_gives_no_grace_to_never_fresh_pages() {
    let mut store = Store::new(1 << 20);
    let response = "Cache-Control: max-age=0\nETag: \"a\"";
    let entry = put(&mut store, "/", response);
    assert_eq!(entry.expired(NOW_S, 60).times().stale_while_revalidate_s, 0);
}

#[test]
fn a_stored_response_has_a_date() {
    let mut store = Store::new(1 << 20);
    let entry = put(&mut store, "/", KEEP);
    let fields = entry.fields();
    assert_eq!(Fields(&fields).first("date"), Some(&b"Tue, 14 Nov 2023 22:13:20 GMT"[..]));
    let own = put(
        &mut store,
        "/",
        "Expires: Fri, 31 Dec 9999 23:59:59 GMT\nDate: Sun, 06 Nov 1994 08:49:37 GMT",
    );
    assert_eq!(own.fields().iter().filter(|(name, _)| *name == b"Date").count(), 1);
}
