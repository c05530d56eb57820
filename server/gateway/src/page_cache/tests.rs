//! Hits, misses and bypasses, in front of an upstream or of scripts.

mod storing;

use crate::testing::{Response, Site, Upstream, in_loop, ok, request_text};
use outboard_http_server::TestClient;

const CACHE: &str = "[app.site.page_cache]\nmode = \"on\"\npurge_from = [\"127.0.0.1\"]\n";

/// A site whose paths are all proxied through a cache.
fn site(upstream: &Upstream, keys: &str) -> Site {
    let port = upstream.port;
    let proxy =
        format!("[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://127.0.0.1:{port}\"\n");
    Site::new(&[], &format!("{proxy}{CACHE}{keys}"))
}

/// An upstream whose body is the number of the request, with these header lines.
fn counting(lines: &'static str) -> Upstream {
    let count = std::cell::Cell::new(0);
    Upstream::start(move |_| {
        count.set(count.get() + 1);
        ok(lines, &count.get().to_string())
    })
}

fn status(response: &Response) -> &str {
    response.header("cache-status").unwrap_or_else(|| panic!("no status in {}", response.head))
}

#[test]
fn a_second_request_is_a_hit() {
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "");
        let miss = site.get("/a").await;
        assert!(
            status(&miss).contains("fwd=uri-miss") && status(&miss).contains("stored"),
            "{}",
            miss.head
        );
        let hit = site.get("/a").await;
        assert_eq!((&hit.body[..], hit.header("content-length")), ("1", Some("1")));
        assert!(status(&hit).contains("; hit"), "{}", hit.head);
        assert!(hit.header("age").is_some());
        assert_eq!(upstream.requests.borrow().len(), 1);
        assert_eq!(site.get("/b").await.body, "2");
    });
}

#[test]
fn only_pages_from_the_cache_are_counted_as_hits() {
    use crate::latencies::{Kind, Phase};
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "");
        for path in ["/a", "/b", "/c", "/a"] {
            site.get(path).await;
        }
        let counts = || {
            let app = site.app();
            let of = |kind| {
                let all = app.latencies.snapshots();
                let of_kind = all.filter(|(one, _)| one.phase == Phase::Total && one.kind == kind);
                of_kind.map(|(_, durations)| durations.count()).sum::<u64>()
            };
            ((of(Kind::Proxy), of(Kind::Hit)) == (3, 1)).then_some(())
        };
        crate::testing::wait_for("three misses and a hit", counts).await;
    });
}

#[test]
fn a_page_that_is_confirmed_is_requested_once() {
    let dates = "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nExpires: Mon, 01 Jan 2024 00:00:01 GMT\r\n";
    in_loop(async {
        for (lines, field) in [
            ("Cache-Control: no-cache\r\n", ""),
            ("Cache-Control: no-cache, max-age=60\r\n", ""),
            (dates, ""),
            // The 304 leaves no lifetime: the page is not for such requests any more, but for this one.
            (dates, "X-Api-Key: 1\r\n"),
            (dates, "Cookie: unknown=1\r\n"),
        ] {
            let upstream = Upstream::start(move |request| {
                match request.to_ascii_lowercase().contains("if-none-match: \"a\"") {
                    true => "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"a\"\r\n\r\n"
                        .into(),
                    false => ok(&format!("ETag: \"a\"\r\n{lines}"), "page"),
                }
            });
            let site = site(&upstream, "");
            assert!(status(&site.get("/a").await).ends_with("; stored"), "{lines}");
            for requests in 2..4 {
                let response = site.request("GET", "/a", field, "").await;
                assert_eq!((response.status, &*response.body), (200, "page"), "{}", response.head);
                assert!(status(&response).contains("fwd-status=304"), "{}", response.head);
                assert_eq!(upstream.requests.borrow().len(), requests, "{lines}{field}");
            }
        }
    });
}

#[test]
fn a_hit_is_conditional_partial_or_without_body() {
    in_loop(async {
        let upstream =
            Upstream::start(|_| ok("Cache-Control: max-age=60\r\nETag: \"a\"\r\n", "0123456789"));
        let site = site(&upstream, "");
        site.get("/a").await;
        let response = site.request("GET", "/a", "If-None-Match: \"a\"\r\n", "").await;
        assert_eq!((response.status, &response.body[..]), (304, ""));
        let response = site.request("GET", "/a", "Range: bytes=2-3\r\n", "").await;
        assert_eq!((response.status, &response.body[..]), (206, "23"));
        assert_eq!(response.header("content-range"), Some("bytes 2-3/10"));
        let response = site.request("GET", "/a", "Range: bytes=99-\r\n", "").await;
        assert_eq!((response.status, response.header("content-range")), (416, Some("bytes */10")));
        let response = site.request("HEAD", "/a", "", "").await;
        assert_eq!((response.body.len(), response.header("content-length")), (0, Some("10")));
        assert_eq!(upstream.requests.borrow().len(), 1);
    });
}

#[test]
fn personal_requests_bypass_stored_pages() {
    in_loop(async {
        let upstream = counting("");
        let site = site(&upstream, "");
        assert_eq!(site.get("/a").await.body, "1");
        let response = site.request("GET", "/a", "Authorization: Basic x\r\n", "").await;
        assert_eq!(response.body, "2");
        assert_eq!(site.get("/a").await.body, "1");
    });
}

#[test]
fn an_unsafe_request_purges_its_page() {
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "");
        assert_eq!(site.get("/a").await.body, "1");
        let response = site.request("POST", "/a", "", "x").await;
        assert!(status(&response).contains("fwd=method") || status(&response).contains("bypass"));
        assert_eq!(site.get("/a").await.body, "3");
    });
}

#[test]
fn a_stale_page_is_confirmed_by_its_origin() {
    in_loop(async {
        let upstream = Upstream::start(|request| match request.contains("\"v1\"") {
            true => {
                "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n".to_owned()
            }
            false => ok(
                "Cache-Control: max-age=60, stale-while-revalidate=0\r\nETag: \"v1\"\r\n",
                "page",
            ),
        });
        let site = site(&upstream, "honor_client_cache_control = true\n");
        site.get("/a").await;
        let response = site.request("GET", "/a", "Cache-Control: no-cache\r\n", "").await;
        assert_eq!((response.status, &response.body[..]), (200, "page"));
        assert!(upstream.last_request().to_ascii_lowercase().contains("if-none-match: \"v1\""));
    });
}

#[test]
fn only_if_cached_forwards_nothing() {
    in_loop(async {
        let upstream = counting("");
        let site = site(&upstream, "honor_client_cache_control = true\n");
        let response = site.request("GET", "/a", "Cache-Control: only-if-cached\r\n", "").await;
        assert_eq!(response.status, 504);
        assert_eq!(upstream.requests.borrow().len(), 0);
    });
}

#[test]
fn purge_is_for_its_peers_only() {
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "");
        assert_eq!(site.get("/a").await.body, "1");
        let response = site.request("PURGE", "/a", "X-Forwarded-For: 127.0.0.1\r\n", "").await;
        assert_eq!((response.status, site.refusals("purge_refused")), (403, 1));
        let response = site.request("PURGE", "/a", "", "").await;
        assert_eq!(response.status, 200);
        assert!(response.body.contains("\"purged\":1"), "{}", response.body);
        assert_eq!(site.get("/a").await.body, "2");
    });
}

#[test]
fn requests_for_a_page_that_is_rendered_wait_for_it() {
    in_loop(async {
        let site = Site::new(&[("index.php", "<?php")], CACHE);
        let clients: [TestClient; 3] = std::array::from_fn(|_| site.connect());
        clients.iter().for_each(|client| client.send(request_text("GET", "/", "", "")));
        let php = site.next_php_request().await;
        assert_eq!(clients[1].receive().await, "");
        assert!(site.php_request().is_none(), "the page is rendered once");
        php.respond(200, &["Content-Type: text/html"], "page");
        for client in clients {
            assert!(client.receive_to_end().await.ends_with("page"));
        }
    });
}

#[test]
fn a_page_that_is_not_stored_is_rendered_for_each_request() {
    in_loop(async {
        let site = Site::new(&[("index.php", "<?php")], CACHE);
        for number in ["1", "2"] {
            let respond = |php: &outboard_php_pool::pool::testing::PhpRequest| {
                php.respond(200, &["X-Outboard-Session: 1", "Content-Type: text/html"], number);
            };
            let response = site.with_php("GET", "/", "", respond).await;
            assert_eq!((&response.body[..], response.header("x-outboard-session")), (number, None));
        }
    });
}

#[test]
fn a_stale_page_is_served_if_rendering_fails() {
    in_loop(async {
        let site = Site::new(&[("index.php", "<?php")], CACHE);
        let head = ["Content-Type: text/html", "Cache-Control: max-age=60, stale-if-error=60"];
        let render =
            |php: &outboard_php_pool::pool::testing::PhpRequest| php.respond(200, &head, "old");
        site.with_php("GET", "/", "", render).await;
        let cache = site.app().page_cache.clone().unwrap();
        assert_eq!(cache.purge(outboard_page_cache::Selector::All, true), 1);
        let fail =
            |php: &outboard_php_pool::pool::testing::PhpRequest| php.respond(500, &[], "oops");
        let response = site.with_php("GET", "/", "Cache-Control: max-age=0\r\n", fail).await;
        assert_eq!((response.status, &response.body[..]), (200, "old"));
    });
}

#[test]
fn a_stale_page_is_refreshed_in_the_background() {
    in_loop(async {
        let site = Site::new(&[("index.php", "<?php")], CACHE);
        let head =
            ["Content-Type: text/html", "Cache-Control: max-age=60, stale-while-revalidate=60"];
        let render =
            |php: &outboard_php_pool::pool::testing::PhpRequest| php.respond(200, &head, "old");
        site.with_php("GET", "/", "", render).await;
        let cache = site.app().page_cache.clone().unwrap();
        cache.purge(outboard_page_cache::Selector::All, true);
        let stale = site.get("/").await;
        assert_eq!(stale.body, "old");
        let php = site.next_php_request().await;
        php.respond(200, &head, "new");
        let mut body = String::new();
        for _ in 0..1_000 {
            body = site.get("/").await.body;
            if body == "new" {
                break;
            }
        }
        assert_eq!(body, "new");
        assert!(site.php_request().is_none());
    });
}

#[test]
fn a_purge_by_tag_affects_pages_with_that_tag() {
    in_loop(async {
        let count = std::cell::Cell::new(0);
        let upstream = Upstream::start(move |request| {
            count.set(count.get() + 1);
            let tag = if request.starts_with("GET /a") { "a" } else { "b" };
            ok(
                &format!("Cache-Control: max-age=60\r\nCache-Tag: {tag}\r\n"),
                &count.get().to_string(),
            )
        });
        let site = site(&upstream, "");
        assert_eq!(
            (site.get("/a").await.body, site.get("/b").await.body),
            ("1".into(), "2".into())
        );
        let response = site.request("PURGE", "/", "Cache-Tag: a\r\n", "").await;
        assert!(response.body.contains("\"purged\":1"), "{}", response.body);
        assert_eq!(
            (site.get("/a").await.body, site.get("/b").await.body),
            ("3".into(), "2".into())
        );
    });
}

#[test]
fn paths_of_the_configuration_bypass_the_cache() {
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "bypass_paths = [\"/account/*\"]\n");
        assert_eq!(site.get("/account/a").await.body, "1");
        assert_eq!(site.get("/account/a").await.body, "2");
    });
}
