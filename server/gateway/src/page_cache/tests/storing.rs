//! Responses that are stored, for which requests, and responses that are not.

use super::*;

#[test]
fn private_responses_are_not_stored() {
    in_loop(async {
        for lines in
            ["Cache-Control: private\r\n", "Cache-Control: no-store\r\n", "Set-Cookie: a=1\r\n"]
        {
            let upstream = counting(lines);
            let site = site(&upstream, "");
            assert_eq!(site.get("/a").await.body, "1");
            assert_eq!(site.get("/a").await.body, "2", "{lines}");
        }
    });
}

#[test]
fn variants_are_stored_by_the_headers_of_vary() {
    in_loop(async {
        let upstream = Upstream::start(|request| {
            let language = request
                .lines()
                .find(|line| line.to_ascii_lowercase().starts_with("accept-language"));
            ok("Cache-Control: max-age=60\r\nVary: Accept-Language\r\n", language.unwrap_or("none"))
        });
        let site = site(&upstream, "");
        for _ in 0..2 {
            for language in ["en", "de"] {
                let lines = format!("Accept-Language: {language}\r\n");
                let response = site.request("GET", "/a", &lines, "").await;
                assert!(response.body.ends_with(language), "{}", response.body);
            }
        }
        assert_eq!(upstream.requests.borrow().len(), 2);
    });
}

#[test]
fn a_response_that_is_too_large_is_sent_and_not_stored() {
    in_loop(async {
        let upstream = Upstream::start(|_| ok("Cache-Control: max-age=60\r\n", &"x".repeat(5_000)));
        let site = site(&upstream, "max_body = \"1 KiB\"\n");
        for number in 1..3 {
            assert_eq!(site.get("/a").await.body.len(), 5_000);
            assert_eq!(upstream.requests.borrow().len(), number);
        }
    });
}

#[test]
fn a_response_that_ends_early_is_not_stored() {
    in_loop(async {
        let upstream = Upstream::start(|_| {
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n\
             Content-Length: 100\r\n\r\nonly a part"
                .to_owned()
        });
        let site = site(&upstream, "");
        for requests in 1..=2 {
            let client = site.connect();
            client.send(request_text("GET", "/a", "", ""));
            client.receive_to_end().await;
            assert_eq!(upstream.requests.borrow().len(), requests);
        }
        assert_eq!(site.app().page_cache.as_ref().unwrap().memory().iter().count(), 0);
    });
}

#[test]
fn errors_of_the_origin_are_not_stored() {
    in_loop(async {
        let upstream = Upstream::start(|_| {
            "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 4\r\n\r\noops"
                .to_owned()
        });
        let site = site(&upstream, "");
        for requests in 1..=2 {
            assert_eq!(site.get("/a").await.status, 500);
            assert_eq!(upstream.requests.borrow().len(), requests);
        }
    });
}

#[test]
fn a_client_that_leaves_does_not_cost_the_others_their_page() {
    in_loop(async {
        let site = Site::new(&[("index.php", "<?php")], CACHE);
        let (leader, follower) = (site.connect(), site.connect());
        leader.send(request_text("GET", "/", "", ""));
        let first = site.next_php_request().await;
        follower.send(request_text("GET", "/", "", ""));
        assert_eq!(follower.receive().await, "");
        drop(leader);
        first.respond(200, &["Content-Type: text/html"], "page");
        // If the page was abandoned with its client, it is rendered again.
        let respond_again = || {
            if let Some(again) = site.php_request() {
                again.respond(200, &["Content-Type: text/html"], "page");
            }
            (site.gateway.server.shared.open_connections() == 0).then_some(())
        };
        crate::testing::wait_for("end of both connections", respond_again).await;
        assert!(follower.receive_to_end().await.ends_with("page"));
    });
}

#[test]
fn a_request_with_credentials_gets_its_own_response() {
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "");
        assert_eq!(site.get("/a").await.body, "1");
        let own = site.request("GET", "/a", "Authorization: Basic eDp5\r\n", "").await;
        assert_eq!(own.body, "2");
        assert_eq!(site.get("/a").await.body, "1", "and it is not stored");
    });
}

#[test]
fn pages_differ_by_query_and_by_host_as_it_is_written() {
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "");
        let get = async |host: &str, target: &str| {
            let client = site.connect();
            let text = request_text("GET", target, "", "");
            client.send(text.replace("example.test", host));
            crate::testing::response(&client.receive_to_end().await).body
        };
        assert_eq!(get("a.test", "/p?x=1").await, "1");
        // Its page may have links with the host as it was written.
        assert_eq!(get("A.TEST", "/p?x=1").await, "2");
        assert_eq!(get("b.test", "/p?x=1").await, "3");
        assert_eq!(get("a.test", "/p?x=2").await, "4");
        assert_eq!(get("a.test", "/p").await, "5");
    });
}

#[test]
fn a_head_request_is_answered_from_the_page_and_stores_none() {
    in_loop(async {
        let upstream = counting("Cache-Control: max-age=60\r\n");
        let site = site(&upstream, "");
        site.request("HEAD", "/a", "", "").await;
        let before = upstream.requests.borrow().len();
        let page = site.get("/a").await;
        assert_eq!(upstream.requests.borrow().len(), before + 1, "a page has a body");
        let head = site.request("HEAD", "/a", "", "").await;
        assert_eq!((&head.body[..], head.header("content-length")), ("", Some("1")));
        assert_eq!(head.header("etag"), page.header("etag"));
        assert_eq!(upstream.requests.borrow().len(), before + 1);
    });
}
