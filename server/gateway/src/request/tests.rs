//! Refusals and small responses: pages, headers, reasons.

use crate::testing::{Site, in_loop};

#[test]
fn an_app_has_its_own_error_pages() {
    in_loop(async {
        let keys = "[app.site.error_pages]\n404 = \"missing.html\"\n";
        let site = Site::new(&[("missing.html", "<p>our page</p>")], keys);
        let response = site.get("/none.txt").await;
        assert_eq!((response.status, &response.body[..]), (404, "<p>our page</p>"));
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    });
}

#[test]
fn header_rules_apply_to_refusals() {
    in_loop(async {
        let keys = "[[app.site.headers]]\nset = { X-Frame-Options = \"DENY\" }\n";
        let site = Site::new(&[], keys);
        assert_eq!(site.get("/none").await.header("x-frame-options"), Some("DENY"));
        // Also to those that belong to no app, if there is one app only.
        let response = site.request("TRACE", "/", "", "").await;
        assert_eq!((response.status, response.header("x-frame-options")), (405, Some("DENY")));
    });
}

#[test]
fn the_reason_is_sent_only_if_configured() {
    in_loop(async {
        let site = Site::new(&[], "");
        assert_eq!(site.get("/.git/config").await.header("x-outboard-reason"), None);
        let site = Site::with_config(&[], "reason_header = true\n[app.site]\nroot = \"www\"\n");
        let response = site.get("/.git/config").await;
        assert_eq!(response.header("x-outboard-reason"), Some("dot_file"), "{}", response.head);
    });
}

#[test]
fn a_refused_head_request_has_no_body() {
    in_loop(async {
        let site = Site::new(&[], "");
        let response = site.request("HEAD", "/none", "", "").await;
        assert_eq!((response.status, &response.body[..]), (404, ""));
        assert_ne!(response.header("content-length"), Some("0"));
    });
}

#[test]
fn only_bytes_that_are_sent_are_counted() {
    in_loop(async {
        let site = Site::new(&[], "[log.access]\npath = \"access.log\"\n");
        site.request("HEAD", "/none", "", "").await;
        assert_eq!(site.gateway.server.counters().body_bytes, 0);
        let log = site.log("access.log");
        assert!(log.contains("\"HEAD /none HTTP/1.1\" 404 0 "), "{log}");
        let page = site.get("/none").await.body;
        assert_eq!(site.gateway.server.counters().body_bytes, page.len() as u64);
    });
}

#[test]
fn in_development_the_error_of_php_is_shown() {
    in_loop(async {
        let text = "environment = \"development\"\n[app.site]\nroot = \"www\"\n[development]\nwatch = []\n";
        let site = Site::with_config(&[("a.php", "<?php")], text);
        let development = &site.gateway.generation().config.development.clone().unwrap();
        let file = site.directory().join("outboard.toml");
        let (development, _) = outboard_development::Development::watch(development, &file, None);
        development.set_failure(Some("PHP Parse error:  <oops> in /a.php on line 1".to_owned()));
        site.gateway.set_development(Some(development));
        let response = site.request("GET", "/a.php", "Accept: text/html\r\n", "").await;
        assert_eq!(response.status, 500);
        assert!(response.body.contains("&lt;oops&gt;"), "{}", response.body);
        let response = site.get("/a.php").await;
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
    });
}
