//! Responses that are stored, refused or confirmed, without a request.

use super::*;
use crate::testing::{Site, in_loop};
use outboard_page_cache::{Found, Selector};
use outboard_php_pool::pool::testing::response_head;
use std::rc::Rc;

/// Of a browser that is not logged in.
const FIELDS: &[Field<'static>] = &[(b"host", b"example.test")];

/// A cache for pages of 1 KiB.
fn site() -> (Site, Rc<PageCache>) {
    let site = Site::new(&[], "[app.site.page_cache]\nmode = \"on\"\nmax_body = \"1 KiB\"\n");
    let cache = site.app().page_cache.clone().unwrap();
    (site, cache)
}

fn key() -> Key {
    Key::new(false, b"example.test", b"/a")
}

fn head(status: u16, lines: &[&str]) -> ResponseHead {
    ResponseHead::read(&response_head(status, lines)).expect("a valid head")
}

fn with_request<T>(
    cache: &PageCache,
    fields: &[Field<'_>],
    work: impl FnOnce(CacheRequest<'_>) -> T,
) -> T {
    let (key, fields) = (key(), Fields(fields));
    work(CacheRequest { cache, key: &key, path: b"/a", fields, request_s: now_s() })
}

fn store(cache: &PageCache, head: &ResponseHead, body: &[u8]) -> Result<Shared, Reason> {
    let epoch = cache.purge_epoch();
    with_request(cache, FIELDS, |request| request.store(head, body, epoch))
}

/// The entry that a 304 with these lines makes of a page.
fn confirm(
    cache: &PageCache,
    fields: &[Field<'_>],
    page: &Shared,
    lines: &[&str],
) -> Option<Shared> {
    with_request(cache, fields, |request| request.confirm(page, &head(304, lines)))
}

fn found(cache: &PageCache) -> Option<Shared> {
    match cache.find(&key(), |_| true) {
        Found::Entry(entry) => Some(entry),
        _ => None,
    }
}

fn field(entry: &Entry, name: &[u8]) -> Option<String> {
    let fields = entry.received_fields();
    let mut values = fields.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| String::from_utf8_lossy(value).into_owned())
}

#[test]
fn a_response_is_stored_unless_a_rule_forbids_it() {
    in_loop(async {
        const LIVES: &str = "Cache-Control: public, max-age=60";
        let (_site, cache) = site();
        let of = |status, lines: &[&str], bytes| {
            let stored = store(&cache, &head(status, lines), &vec![b'x'; bytes]);
            assert_eq!(stored.is_ok(), found(&cache).is_some(), "{lines:?}");
            stored.map(drop).err()
        };
        assert_eq!(of(200, &[LIVES], 1_025), Some(Reason::TooLarge));
        for (length, bytes) in [(3, 2), (3, 4), (0, 1), (u64::MAX, 1)] {
            let line = format!("Content-Length: {length}");
            assert_eq!(of(200, &[LIVES, &line], bytes), Some(Reason::Incomplete), "{line}");
        }
        for (status, line, reason) in [
            (200, "X-Outboard-Session: 1", Reason::Session),
            (200, "X-Accel-Expires: 0", Reason::NoLifetime),
            (200, "Set-Cookie: a=1", Reason::SetCookie),
            (200, "Vary: Accept, *", Reason::VaryStar),
            (206, "Content-Range: bytes 0-0/2", Reason::Status),
        ] {
            assert_eq!(of(status, &[LIVES, line], 1), Some(reason), "{line}");
        }
        assert_eq!(of(200, &["Cache-Control: max-age=60, private"], 1), Some(Reason::Private));
        assert_eq!(of(200, &["Cache-Control: max-age=60, no-store"], 1), Some(Reason::NoStore));
        assert_eq!(of(200, &[LIVES, "Content-Length: 1024"], 1_024), None);
    });
}

#[test]
fn a_response_that_was_purged_meanwhile_is_not_stored() {
    in_loop(async {
        let (_site, cache) = site();
        let page = head(200, &["Cache-Control: max-age=60", "Cache-Tag: news"]);
        for (selector, is_stored) in [
            (Selector::tags([&b"other"[..]]), true),
            (Selector::tags([&b"news"[..]]), false),
            (Selector::All, false),
        ] {
            let epoch = cache.purge_epoch();
            cache.purge(selector, false);
            let stored = with_request(&cache, FIELDS, |request| request.store(&page, b"a", epoch));
            let expected = if is_stored { None } else { Some(Reason::PurgedMeanwhile) };
            assert_eq!(stored.err(), expected);
            assert_eq!(found(&cache).is_some(), is_stored);
        }
    });
}

#[test]
fn an_incomplete_response_has_the_reason_that_lasts() {
    in_loop(async {
        let (_site, cache) = site();
        for (lines, bytes, reason) in [
            (&["X-Sendfile: /a", "X-Outboard-Session: 1"][..], 0, Reason::File),
            (&["X-Outboard-Session: 1", "Cache-Control: no-store"], 9_999, Reason::Session),
            // It would not be stored either if it were smaller, or were not streamed.
            (&["Cache-Control: no-store"], 9_999, Reason::NoStore),
            (&["Cache-Control: private"], 1, Reason::Private),
            (&["Cache-Control: max-age=60"], 1_025, Reason::TooLarge),
            (&["Cache-Control: max-age=60"], 1_024, Reason::Streamed),
        ] {
            let head = head(200, lines);
            let found = with_request(&cache, FIELDS, |request| request.refusal(&head, bytes));
            assert_eq!(found, reason, "{lines:?}");
        }
    });
}

#[test]
fn a_confirmation_renews_the_stored_page() {
    in_loop(async {
        let (_site, cache) = site();
        let lines = [
            "Cache-Control: max-age=60",
            "ETag: \"a\"",
            "Date: Mon, 01 Jan 2024 00:00:00 GMT",
            "X-Kept: 1",
        ];
        let page = store(&cache, &head(200, &lines), b"page").unwrap();
        let renewed = ["ETag: \"a\"", "Cache-Control: max-age=600"];
        let entry = confirm(&cache, FIELDS, &page, &renewed).expect("it is about this page");
        assert_eq!((entry.status(), entry.times().lifetime_s), (200, 600));
        assert_eq!(field(&entry, b"x-kept").as_deref(), Some("1"));
        // A 304 without Date is as new as its arrival, not as the page.
        assert!(entry.times().initial_age_s < 60, "{:?}", entry.times());
        assert_eq!(found(&cache).map(|found| found.times().lifetime_s), Some(600));
    });
}

#[test]
fn a_confirmation_of_something_else_is_none() {
    in_loop(async {
        let (_site, cache) = site();
        let page = head(200, &["Cache-Control: max-age=60", "ETag: \"a\""]);
        let page = store(&cache, &page, b"page").unwrap();
        for lines in [
            &["ETag: \"b\""][..],
            &["ETag: \"a\"", "X-Outboard-Session: 1"],
            &["ETag: \"a\"", "X-Accel-Expires: 0"],
            &["ETag: \"a\"", "Cache-Control: no-store"],
            &["ETag: \"a\"", "Cache-Control: private"],
        ] {
            assert!(confirm(&cache, FIELDS, &page, lines).is_none(), "{lines:?}");
        }
        assert_eq!(found(&cache).map(|found| found.times().lifetime_s), Some(60), "as before");
    });
}

#[test]
fn a_confirmation_after_a_purge_is_for_one_request() {
    in_loop(async {
        let (_site, cache) = site();
        let lines = ["Cache-Control: max-age=60", "ETag: \"a\""];
        let page = store(&cache, &head(200, &lines), b"page").unwrap();
        assert_eq!(cache.purge(Selector::All, false), 1);
        assert!(confirm(&cache, FIELDS, &page, &lines).is_some());
        assert!(found(&cache).is_none());
    });
}

#[test]
fn a_confirmation_without_a_lifetime_is_for_one_request() {
    in_loop(async {
        let (_site, cache) = site();
        let dates =
            ["Date: Mon, 01 Jan 2024 00:00:00 GMT", "Expires: Mon, 01 Jan 2024 00:00:01 GMT"];
        let page = head(200, &["ETag: \"a\"", dates[0], dates[1]]);
        let page = store(&cache, &page, b"page").unwrap();
        // Its Date does not hold for the 304, and so Expires is in the past.
        for field in [(&b"x-api-key"[..], &b"1"[..]), (b"cookie", b"unknown=1")] {
            let fields = [FIELDS[0], field];
            let entry = confirm(&cache, &fields, &page, &["ETag: \"a\""]).expect("its page");
            assert_eq!(entry.times().lifetime_s, 0);
            assert!(!entry.may_compress(), "it is sent once");
            assert_eq!(found(&cache).map(|found| found.times().lifetime_s), Some(1), "as before");
        }
    });
}

#[test]
fn only_a_complete_page_is_asked_for_by_its_validators() {
    in_loop(async {
        let (_site, cache) = site();
        let lines = ["Cache-Control: max-age=60", "ETag: \"a\""];
        let page = store(&cache, &head(200, &lines), b"page").unwrap();
        let asked = requirements(&cache, Some(&page));
        assert_eq!(asked.whole_bytes, 1_025, "a larger body is seen");
        let expected = [(b"if-none-match".to_vec(), b"\"a\"".to_vec())];
        assert!(
            asked
                .conditions
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                .eq(expected)
        );
        assert!(requirements(&cache, None).conditions.is_empty());
        let moved = head(301, &["Cache-Control: max-age=60", "ETag: \"a\"", "Location: /b"]);
        let moved = store(&cache, &moved, b"").unwrap();
        assert!(requirements(&cache, Some(&moved)).conditions.is_empty());
    });
}
