//! Requests that reach no app, and the log lines and counters of all.

mod allocations;

use crate::gateway::Gateway;
use crate::testing::{Site, in_loop};
use outboard_http_server::{ListenerContext, Request as HttpRequest, ResponseWriter, Role};
use outboard_log::Wall;
use std::rc::Rc;

const LOG: &str = "[log.access]\npath = \"access.log\"\n[log.error]\npath = \"error.log\"\n";

#[test]
fn options_of_the_server_lists_its_methods() {
    in_loop(async {
        let site = Site::new(&[], "");
        let response = site.request("OPTIONS", "*", "", "").await;
        assert_eq!(response.status, 204);
        assert!(response.header("allow").unwrap().contains("PATCH"), "{}", response.head);
    });
}

#[test]
fn connect_and_trace_are_refused() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "");
        for (method, target) in [("TRACE", "/a.txt"), ("CONNECT", "example.test:80")] {
            let response = site.request(method, target, "", "").await;
            assert_eq!(response.status, 405, "{method}");
            assert!(!response.header("allow").unwrap().contains(method));
        }
        assert_eq!(site.refusals("method_refused"), 2);
    });
}

#[test]
fn an_invalid_path_is_refused_counted_and_logged() {
    in_loop(async {
        let site = Site::new(&[], LOG);
        let response = site.get("/../etc/passwd").await;
        assert_eq!(response.status, 400);
        assert_eq!(site.refusals("bad_path"), 1);
        let access = site.log("access.log");
        assert_eq!(access.lines().count(), 1, "{access}");
        assert!(access.starts_with("127.0.0.1 ") && access.contains("/../etc/passwd"), "{access}");
        assert!(access.contains(" 400 "), "{access}");
        let error = site.log("error.log");
        assert!(
            error.contains("bad_path") && error.contains("client=127.0.0.1 GET /.."),
            "{error}"
        );
    });
}

#[test]
fn an_invalid_head_is_refused_counted_and_logged() {
    in_loop(async {
        let site = Site::new(&[], LOG);
        let client = site.connect();
        client.send("NONSENSE\r\n\r\n");
        let response = client.receive_to_end().await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        let access = site.log("access.log");
        assert!(access.contains("\"NONSENSE - -\" 400"), "{access}");
        assert_eq!(site.gateway.server.counters().by_class[4], 1);
    });
}

#[test]
fn a_host_without_an_app_is_refused() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "hosts = [\"other.test\"]");
        assert_eq!(site.get("/a.txt").await.status, 404);
        assert_eq!(site.refusals("no_app"), 1);
        let client = site.connect();
        client.send("GET /a.txt HTTP/1.1\r\nHost: OTHER.test:8080\r\nConnection: close\r\n\r\n");
        assert!(client.receive_to_end().await.starts_with("HTTP/1.1 200 "));
    });
}

#[test]
fn a_response_has_one_access_log_line_and_one_count() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "hello")], LOG);
        let lines = "User-Agent: test\r\nReferer: http://x.test/\r\n";
        assert_eq!(site.request("GET", "/a.txt?q", lines, "").await.body, "hello");
        let access = site.log("access.log");
        assert_eq!(access.lines().count(), 1, "{access}");
        assert!(access.contains("\"GET /a.txt?q HTTP/"), "{access}");
        assert!(access.contains("\" 200 5 \"http://x.test/\" \"test\""), "{access}");
        let counters = site.gateway.server.counters();
        assert_eq!((counters.requests, counters.body_bytes), (1, 5));
    });
}

#[test]
fn metrics_have_a_path_only_if_configured() {
    in_loop(async {
        let site = Site::new(&[], "[admin]\nmetrics = \"/metrics\"\n");
        let response = site.get("/metrics").await;
        assert_eq!(response.status, 200);
        assert!(response.body.contains("outboard_uptime_seconds "), "{}", response.body);
        let site = Site::new(&[], "");
        assert_eq!(site.get("/metrics").await.status, 404);
    });
}

#[test]
fn a_listener_with_redirect_leaves_other_hosts_and_acme_alone() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "hosts = [\"example.test\"]");
        let redirecting =
            || ListenerContext { redirects_to_https: true, ..ListenerContext::plain(Role::Apps) };
        // Without a listener with TLS there is no port to redirect to.
        let response = site.request_to(redirecting(), "GET", "/a.txt", "", "").await;
        assert_eq!(response.status, 200);
    });
}

#[test]
fn a_redirect_of_a_rule_keeps_the_query() {
    in_loop(async {
        let rule = "[[app.site.rewrite]]\nmatch = '^/old$'\nto = \"/new\"\nstatus = 301\n";
        let site = Site::new(&[], rule);
        let response = site.get("/old?a=1").await;
        assert_eq!((response.status, response.header("location")), (301, Some("/new?a=1")));
    });
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    in_loop(async {
        let site = Site::new(&[("a.php", "<?php"), ("b.txt", "file")], "");
        let client = site.connect();
        client.send("GET /a.php HTTP/1.1\r\nHost: a\r\n\r\nGET /b.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        client.send("GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let php = site.next_php_request().await;
        assert_eq!(client.receive().await, "", "the file waits for the script");
        php.respond(200, &[], "script");
        let responses = client.receive_to_end().await;
        let at = |part: &str| responses.find(part).unwrap_or_else(|| panic!("{responses}"));
        assert!(at("script") < at("file") && at("file") < at("HTTP/1.1 404"), "{responses}");
    });
}

#[test]
fn an_old_client_without_a_host_gets_a_response_and_its_end() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "");
        let client = site.connect();
        client.send("GET /a.txt HTTP/1.0\r\n\r\n");
        let response = crate::testing::response(&client.receive_to_end().await);
        assert_eq!((response.status, &response.body[..]), (200, "a"));
        let without = site.connect();
        without.send("GET /a.txt HTTP/1.1\r\n\r\n");
        let response = crate::testing::response(&without.receive_to_end().await);
        assert_eq!(response.status, 400, "HTTP/1.1 requires one");
    });
}

/// The bytes of the future that a function returns.
fn size_of_future<A, B, F: Future>(_: impl FnOnce(A, B) -> F) -> usize {
    size_of::<F>()
}

/// The path that needs most decides what each idle connection takes: rare paths are boxed.
#[test]
fn the_task_of_a_connection_is_as_small_as_its_account() {
    type Message = (&'static mut HttpRequest, &'static mut ResponseWriter);
    let respond = |gateway: &'static Rc<Gateway>, (request, response): Message| {
        super::respond_to_client(gateway, request, response, Wall::now())
    };
    let bytes = size_of_future(respond);
    assert!(bytes <= 4_864, "{bytes}");
}
