//! The points of several threads, of many apps, of caches and of PHP.

use super::*;
use crate::testing::{Site, Upstream, in_loop, ok, wait_for};
use outboard_admin_api::dashboard::Point;
use std::future::poll_fn;
use std::pin::pin;

/// Adds a point, and returns it.
async fn point(site: &Site) -> Point {
    record(&site.gateway).await;
    site.gateway.history.borrow().since(0).pop().expect("the second one, and later ones")
}

#[test]
fn a_point_adds_up_what_all_threads_count() {
    in_loop(async {
        let files = &[("a.txt", "abc")];
        let (lead, other) = (Site::new(files, ""), Site::new(files, ""));
        lead.gateway.shards.set_followers(vec![other.handle()]);
        record(&lead.gateway).await;
        lead.get("/a.txt").await;
        other.get("/a.txt").await;
        let missing = other.get("/b.txt").await;
        let point = point(&lead).await;
        assert_eq!((point.classes[2], point.classes[4]), (2, 1));
        assert_eq!(point.body_bytes, 6 + missing.body.len() as u64);
        assert_eq!(point.phases["total"].count, 3);
        // The app is one, whatever the number of threads.
        let history = lead.gateway.history.borrow();
        assert_eq!(history.apps(), ["site"]);
        let of_app = history.of_app_since("site", 0);
        let last = of_app.last().expect("a point");
        assert_eq!((last.classes[2], last.classes[4]), (2, 1));
        assert_eq!(last.phases["total"].count, 3);
    });
}

#[test]
fn many_apps_are_added_up_in_several_turns() {
    in_loop(async {
        let numbers = 0..APPS_MAX + 2;
        let apps: String = numbers
            .clone()
            .map(|number| {
                format!("[app.a{number}]\nroot = \"www\"\nhosts = [\"a{number}.test\"]\n")
            })
            .collect();
        let site = Site::with_config(&[("a.txt", "a")], &apps);
        assert!(of_thread(&site.gateway).await.apps.is_empty(), "none had a request");
        for number in numbers.clone() {
            let client = site.connect();
            let host = format!("Host: a{number}.test\r\nConnection: close");
            client.send(format!("GET /a.txt HTTP/1.1\r\n{host}\r\n\r\n"));
            assert!(client.receive_to_end().await.starts_with("HTTP/1.1 200 "));
        }
        let mut turns = 0;
        let mut totals = pin!(of_thread(&site.gateway));
        let totals = poll_fn(|context| {
            turns += 1;
            totals.as_mut().poll(context)
        })
        .await;
        assert!(turns > numbers.len() / APPS_PER_TURN, "{turns}");
        assert_eq!(totals.apps.len(), APPS_MAX);
        // Those without a history of their own are part of the server's.
        assert_eq!(totals.phases[0].1.count(), numbers.len() as u64);
        assert_eq!(totals.classes[2], numbers.len() as u64);
    });
}

#[test]
fn a_status_of_no_class_is_an_incomplete_response() {
    in_loop(async {
        let site = Site::new(&[], "");
        for status in [0, 200, 599, 600, 999, u16::MAX] {
            site.gateway.server.count_response(status, 0);
        }
        assert_eq!(of_thread(&site.gateway).await.classes, [4, 0, 1, 0, 0, 1]);
    });
}

#[test]
fn a_point_has_the_requests_that_wait_at_its_end() {
    in_loop(async {
        let site = Site::new(&[("index.php", "<?php")], "");
        record(&site.gateway).await;
        let client = site.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let pool = site.app().pool();
        wait_for("the request", || (pool.load() == (0, 1)).then_some(())).await;
        let waiting = point(&site).await;
        assert_eq!((waiting.in_flight, waiting.waiting), (0, 1));
        site.next_php_request().await.respond(200, &[], "a");
        client.receive_to_end().await;
        assert_eq!(point(&site).await.waiting, 0);
    });
}

#[test]
fn stale_pages_are_hits_as_well() {
    in_loop(async {
        let lines = "Cache-Control: max-age=60, stale-while-revalidate=60\r\n";
        let upstream = Upstream::start(move |_| ok(lines, "page"));
        let port = upstream.port;
        let site = Site::new(
            &[],
            &format!(
                "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://127.0.0.1:{port}\"\n\
                 [app.site.page_cache]\nmode = \"on\"\n"
            ),
        );
        record(&site.gateway).await;
        for path in ["/a", "/b", "/a"] {
            site.get(path).await;
        }
        let fresh = point(&site).await;
        assert_eq!((fresh.hits, fresh.misses), (1, 2));
        let cache = site.app().page_cache.clone().unwrap();
        assert_eq!(cache.purge(outboard_page_cache::Selector::All, true), 2);
        assert_eq!(site.get("/a").await.body, "page");
        assert_eq!(point(&site).await.hits, 1, "since the last point");
    });
}
