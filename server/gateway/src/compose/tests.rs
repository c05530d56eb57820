//! Composed pages of files, texts, scripts and upstreams.

use crate::testing::{Site, Upstream, in_loop, ok};
use outboard_log::Reason;

/// A site whose page `/page` has these parts.
fn site(files: &[(&str, &str)], parts: &[&str]) -> Site {
    let parts: Vec<String> =
        parts.iter().map(|part| format!("[[app.site.compose.part]]\n{part}\n")).collect();
    let keys = format!("[[app.site.compose]]\npath = \"/page\"\n{}", parts.concat());
    let scripts = ["a.php", "b.php", "slow.php", "none.html"].map(|name| (name, ""));
    let site = Site::new(&[&scripts, files].concat(), &keys);
    // It has to exist when the configuration is read.
    std::fs::remove_file(site.directory().join("www/none.html")).unwrap();
    site
}

#[test]
fn parts_are_sent_in_their_order_with_a_length() {
    in_loop(async {
        let parts = ["text = \"a\"", "file = \"/b.html\"", "text = \"c\""];
        let site = site(&[("b.html", "<b>")], &parts);
        assert_eq!(site.get("/page").await.body, "a<b>c");
        // The file is in memory now.
        let response = site.get("/page").await;
        assert_eq!((response.status, &response.body[..]), (200, "a<b>c"));
        assert_eq!(response.header("content-length"), Some("5"));
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    });
}

#[test]
fn a_missing_file_is_replaced_or_fails_the_page() {
    in_loop(async {
        let replaced = site(&[], &["file = \"/none.html\"\nfallback = \"(none)\"", "text = \"x\""]);
        assert_eq!(replaced.get("/page").await.body, "(none)x");
        let skipped = site(&[], &["file = \"/none.html\"\non_error = \"skip\"", "text = \"x\""]);
        assert_eq!(skipped.get("/page").await.body, "x");
        let failing = site(&[], &["file = \"/none.html\"", "text = \"x\""]);
        assert_eq!(failing.get("/page").await.status, 502);
        assert_eq!(failing.refusals("part_failed"), 1);
    });
}

#[test]
fn the_first_script_sets_status_and_headers() {
    in_loop(async {
        let site = site(&[], &["text = \"a\"", "script = \"/b.php?x=1\""]);
        let response = site
            .with_php("GET", "/page?q=2", "Cookie: c=1\r\n", |php| {
                assert!(php.view().headers().any(|(name, _)| name.eq_ignore_ascii_case(b"cookie")));
                php.respond(201, &["X-A: 1", "ETag: \"1\"", "Content-Length: 1"], "b");
            })
            .await;
        assert_eq!((response.status, &response.body[..]), (201, "ab"));
        assert_eq!((response.header("x-a"), response.header("etag")), (Some("1"), None));
    });
}

#[test]
fn a_redirect_of_the_first_script_replaces_the_page() {
    in_loop(async {
        let site = site(&[], &["text = \"a\"", "script = \"/b.php\""]);
        let redirect = |php: &outboard_php_pool::pool::testing::PhpRequest| {
            php.respond(302, &["Location: /login"], "moved");
        };
        let response = site.with_php("GET", "/page", "", redirect).await;
        assert_eq!((response.status, &response.body[..]), (302, "moved"));
        assert_eq!(response.header("location"), Some("/login"));
    });
}

#[test]
fn a_failed_script_fails_the_page_with_its_reason() {
    in_loop(async {
        let site = site(&[], &["text = \"a\"", "script = \"/b.php\""]);
        let fail = |php: &outboard_php_pool::pool::testing::PhpRequest| {
            php.fail(Reason::WorkerCrashed);
        };
        let response = site.with_php("GET", "/page", "", fail).await;
        assert_eq!(response.status, Reason::WorkerCrashed.status());
        assert_eq!(site.refusals(Reason::WorkerCrashed.code()), 1);
    });
}

#[test]
fn upstream_parts_start_together_and_failed_ones_are_replaced() {
    in_loop(async {
        let upstream = Upstream::start(|request| match request.starts_with("GET /bad") {
            true => {
                "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
            }
            false => ok("X-Secret: 1\r\n", &format!("[{}]", request.lines().next().unwrap())),
        });
        let port = upstream.port;
        let good = format!("fetch = \"http://127.0.0.1:{port}/a?q={{query:q}}\"");
        let bad = format!("fetch = \"http://127.0.0.1:{port}/bad\"\nfallback = \"-\"");
        let site = site(&[], &[&good, &bad, "text = \"end\""]);
        let response = site.get("/page?q=1").await;
        assert_eq!(response.body, "[GET /a?q=1 HTTP/1.1]-end");
        assert_eq!(response.header("x-secret"), None);
    });
}

#[test]
fn a_head_request_renders_no_parts() {
    in_loop(async {
        let site = site(&[], &["text = \"a\""]);
        let response = site.request("HEAD", "/page", "", "").await;
        assert_eq!((response.status, &response.body[..]), (200, ""));
        assert_eq!(site.request("POST", "/page", "", "x").await.status, 405);
    });
}

#[test]
fn a_slow_part_is_replaced_after_its_timeout() {
    in_loop(async {
        let script = "script = \"/slow.php\"\ntimeout = \"20ms\"\nfallback = \"(slow)\"";
        let site = site(&[], &["script = \"/a.php\"", script]);
        let client = site.connect();
        client.send(crate::testing::request_text("GET", "/page", "", ""));
        let first = site.next_php_request().await;
        let slow = site.next_php_request().await;
        first.respond(200, &[], "a");
        assert!(client.receive_to_end().await.contains("(slow)"));
        assert!(slow.is_abandoned());
    });
}

#[test]
fn a_sequential_part_starts_after_those_before_it() {
    in_loop(async {
        let site = site(&[], &["script = \"/a.php\"", "script = \"/b.php\"\nsequential = true"]);
        let client = site.connect();
        client.send(crate::testing::request_text("GET", "/page", "", ""));
        let first = site.next_php_request().await;
        assert_eq!(client.receive().await, "");
        assert!(site.php_request().is_none());
        first.respond(200, &[], "a");
        site.next_php_request().await.respond(200, &[], "b");
        let text = client.receive_to_end().await;
        assert_eq!(crate::testing::response(&text).body, "ab");
    });
}

#[test]
fn output_is_sent_while_later_parts_render() {
    in_loop(async {
        let site = site(&[], &["text = \"early\"", "script = \"/a.php\"", "script = \"/b.php\""]);
        let client = site.connect();
        client.send(crate::testing::request_text("GET", "/page", "", ""));
        let first = site.next_php_request().await;
        let second = site.next_php_request().await;
        first.respond(200, &[], " one");
        let text = client.receive().await;
        assert!(text.contains("Transfer-Encoding: chunked\r\n"), "{text}");
        assert!(text.contains("early one"), "{text}");
        second.fail(Reason::WorkerCrashed);
        // The page is not completed.
        assert!(!client.receive_to_end().await.contains("0\r\n\r\n"));
        assert_eq!(site.refusals(Reason::WorkerCrashed.code()), 1);
    });
}

#[test]
fn a_part_of_another_status_fails() {
    in_loop(async {
        let parts = ["script = \"/a.php\"", "script = \"/b.php\"\nfallback = \"-\""];
        let site = site(&[], &parts);
        let client = site.connect();
        client.send(crate::testing::request_text("GET", "/page", "", ""));
        let first = site.next_php_request().await;
        let second = site.next_php_request().await;
        second.respond(404, &[], "missing");
        first.respond(200, &[], "a");
        let text = client.receive_to_end().await;
        assert_eq!(crate::testing::response(&text).body, "a-");
    });
}

#[test]
fn a_replaced_script_leaves_none_of_its_output() {
    in_loop(async {
        let parts = ["text = \"<\"", "script = \"/a.php\"\nfallback = \"(none)\"", "text = \">\""];
        let site = site(&[], &parts);
        let response = site
            .with_php("GET", "/page", "", |php| {
                php.send_head(200, &[]);
                php.send_body("half a part");
                php.flush();
                php.fail(Reason::WorkerCrashed);
            })
            .await;
        assert_eq!((response.status, &response.body[..]), (200, "<(none)>"));
    });
}

#[test]
fn a_part_that_is_too_large_fails() {
    in_loop(async {
        let site = site(&[], &["script = \"/a.php\"\nfallback = \"(none)\""]);
        let response = site
            .with_php("GET", "/page", "", |php| {
                php.send_head(200, &[]);
                // It goes on after that.
                php.send_body(vec![b'x'; (16 << 20) + 1]);
                php.flush();
            })
            .await;
        assert!(
            response.status == 200 && response.body == "(none)",
            "{} bytes",
            response.body.len()
        );
    });
}

#[test]
fn an_upstream_without_a_complete_response_is_replaced() {
    in_loop(async {
        let cut = Upstream::start(|_| {
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\ncut".to_owned()
        });
        let part =
            |port: u16| format!("fetch = \"http://127.0.0.1:{port}/\"\nfallback = \"(none)\"");
        let (part, end) = (part(cut.port), "text = \"end\"");
        let site = site(&[], &[&part, end]);
        assert_eq!(site.get("/page").await.body, "(none)end");
    });
}
