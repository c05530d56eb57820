//! Responses of scripts; the test is PHP.

use crate::testing::{Site, in_loop, request_text};
use outboard_log::Reason;
use outboard_php_pool::pool::testing::PhpRequest;
use outboard_ring::request::Field;

const FILES: [(&str, &str); 1] = [("index.php", "<?php")];

fn field(php: &PhpRequest, field: Field) -> String {
    String::from_utf8(php.view().fields()[field as usize].to_vec()).unwrap()
}

#[test]
fn a_script_receives_the_fields_of_the_request() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let response = site
            .with_php("GET", "/index.php/info?a=1", "X-A: b\r\n", |php| {
                assert_eq!(field(php, Field::Method), "GET");
                assert_eq!(field(php, Field::Uri), "/index.php/info?a=1");
                assert_eq!(field(php, Field::Query), "a=1");
                assert_eq!(field(php, Field::ScriptName), "/index.php");
                assert_eq!(field(php, Field::PathInfo), "/info");
                assert_eq!(field(php, Field::RemoteAddr), "127.0.0.1");
                assert_eq!(field(php, Field::ServerName), "example.test");
                assert!(field(php, Field::ScriptFilename).ends_with("/www/index.php"));
                let lines: Vec<_> = php.view().headers().collect();
                assert!(lines.contains(&(&b"X-A"[..], &b"b"[..])), "{lines:?}");
                php.respond(200, &["Content-Type: text/plain"], "hello");
            })
            .await;
        assert_eq!((response.status, &response.body[..]), (200, "hello"));
        assert_eq!(response.header("content-length"), Some("5"));
    });
}

#[test]
fn a_script_receives_the_body_of_the_request() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let client = site.connect();
        client.send(request_text("POST", "/", "Content-Type: text/plain\r\n", "name=value"));
        let php = site.next_php_request().await;
        assert_eq!(php.body(), b"name=value");
        assert_eq!(field(&php, Field::ContentType), "text/plain");
        php.respond(204, &[], "");
        assert!(client.receive_to_end().await.starts_with("HTTP/1.1 204 "));
    });
}

#[test]
fn claims_about_the_client_do_not_bypass_a_proxy() {
    in_loop(async {
        let text = "[[listen]]\naddress = \"127.0.0.1:0\"\ntrusted_proxies = [\"10.0.0.1\"]\n\
                    [app.site]\nroot = \"www\"\n";
        let site = Site::with_config(&FILES, text);
        let listener = outboard_http_server::ListenerContext {
            forwarding: site.gateway.generation().config.listeners[0].forwarding.clone(),
            ..outboard_http_server::ListenerContext::plain(outboard_http_server::Role::Apps)
        };
        let client = site.connect_to(listener);
        client.send(request_text("GET", "/", "X-Forwarded-For: 1.2.3.4\r\n", ""));
        let php = site.next_php_request().await;
        assert_eq!(field(&php, Field::RemoteAddr), "127.0.0.1");
        let mut names = php.view().headers().map(|(name, _)| name);
        assert!(!names.any(|name| name.eq_ignore_ascii_case(b"x-forwarded-for")));
    });
}

#[test]
fn output_is_streamed_in_order() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let client = site.connect();
        client.send(request_text("GET", "/", "", ""));
        let php = site.next_php_request().await;
        php.send_head(200, &["Content-Type: text/event-stream"]);
        php.send_body("one ");
        php.flush();
        let first = client.receive().await;
        assert!(
            first.contains("Transfer-Encoding: chunked\r\n") && first.ends_with("4\r\none \r\n"),
            "{first}"
        );
        php.send_body("two");
        php.finish();
        assert_eq!(client.receive_to_end().await, "3\r\ntwo\r\n0\r\n\r\n");
    });
}

#[test]
fn a_failure_after_the_head_breaks_the_response() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let client = site.connect();
        client.send(request_text("GET", "/", "", ""));
        let php = site.next_php_request().await;
        php.send_head(200, &[]);
        php.send_body("part");
        php.flush();
        assert!(client.receive().await.ends_with("4\r\npart\r\n"));
        php.fail(Reason::WorkerCrashed);
        assert_eq!(client.receive_to_end().await, "");
        assert_eq!(site.refusals(Reason::WorkerCrashed.code()), 1);
    });
}

#[test]
fn a_failure_before_the_head_has_a_status() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let response = site.with_php("GET", "/", "", |php| php.fail(Reason::WorkerCrashed)).await;
        assert_eq!(response.status, Reason::WorkerCrashed.status());
        let response = site.with_php("GET", "/", "", |php| php.respond(42, &[], "")).await;
        assert_eq!(response.status, Reason::BadResponse.status());
    });
}

#[test]
fn a_request_is_abandoned_when_its_client_goes_away() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let client = site.connect();
        client.send(request_text("GET", "/", "", ""));
        let php = site.next_php_request().await;
        drop(client);
        crate::testing::wait_for("the abandonment", || php.is_abandoned().then_some(())).await;
    });
}

#[test]
fn interim_responses_precede_the_response() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let client = site.connect();
        client.send(request_text("GET", "/", "", ""));
        let php = site.next_php_request().await;
        php.send_interim(103, &["Link: </a.css>"]);
        assert!(
            client
                .receive()
                .await
                .starts_with("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
        );
        php.respond(200, &[], "page");
        assert!(client.receive_to_end().await.ends_with("page"));
    });
}

#[test]
fn text_is_compressed_for_clients_that_accept_it() {
    in_loop(async {
        let site = Site::new(&FILES, "compress = true");
        let text = "text ".repeat(1_000);
        let respond = |lines: &'static [&'static str]| {
            let text = text.clone();
            move |php: &PhpRequest| php.respond(200, lines, text)
        };
        let accept = "Accept-Encoding: gzip\r\n";
        let html: &[&str] = &["Content-Type: text/html", "ETag: \"a\""];
        let response = site.with_php("GET", "/", accept, respond(html)).await;
        assert_eq!(response.header("content-encoding"), Some("gzip"));
        assert_eq!(response.header("vary"), Some("Accept-Encoding"));
        assert_eq!(response.header("etag"), Some("W/\"a\""));
        let response = site.with_php("GET", "/", "", respond(html)).await;
        assert_eq!(response.header("content-encoding"), None);
        assert_eq!(response.header("vary"), Some("Accept-Encoding"));
        for unfit in [
            &["Content-Type: image/png"][..],
            &["Content-Type: text/html", "Cache-Control: no-transform"],
            &["Content-Type: text/html", "Content-Encoding: br"],
        ] {
            let response = site.with_php("GET", "/", accept, respond(unfit)).await;
            assert_ne!(response.header("content-encoding"), Some("gzip"), "{unfit:?}");
        }
    });
}

#[test]
fn a_large_body_is_sent_completely() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let body = "0123456789".repeat(60_000);
        let sent = body.clone();
        let respond = move |php: &PhpRequest| php.respond(200, &["Content-Type: image/png"], sent);
        let response = site.with_php("GET", "/", "", respond).await;
        assert_eq!(response.header("content-length"), Some("600000"));
        assert!(response.body == body, "the content differs");
    });
}

#[test]
fn in_worker_mode_every_request_goes_to_the_worker_script() {
    in_loop(async {
        let keys = "mode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"\n";
        let site = Site::new(&[("worker.php", "<?php"), ("a.txt", "a")], keys);
        assert_eq!(site.get("/a.txt").await.body, "a");
        for target in ["/", "/any/path", "/worker.php"] {
            site.with_php("GET", target, "", |php| {
                assert_eq!(field(php, Field::Uri), target);
                assert_eq!(field(php, Field::ScriptName), "/index.php");
                assert!(field(php, Field::ScriptFilename).ends_with("/www/worker.php"));
                php.respond(200, &[], "");
            })
            .await;
        }
    });
}

#[test]
fn a_prefix_is_a_part_of_the_script_name() {
    in_loop(async {
        let site = Site::new(&FILES, "path = \"/blog\"");
        site.with_php("GET", "/blog/index.php/x", "", |php| {
            assert_eq!(field(php, Field::ScriptName), "/blog/index.php");
            assert_eq!(field(php, Field::Uri), "/blog/index.php/x");
            assert!(field(php, Field::ScriptFilename).ends_with("/www/index.php"));
            php.respond(200, &[], "");
        })
        .await;
        assert_eq!(site.get("/index.php").await.status, 404);
    });
}

#[test]
fn the_host_of_the_target_precedes_the_header() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        site.with_php("GET", "http://target.test/index.php", "", |php| {
            assert_eq!(field(php, Field::ServerName), "target.test");
            assert_eq!(field(php, Field::Uri), "/index.php");
            let host = php.view().headers().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
            assert_eq!(host.unwrap().1, b"target.test");
            php.respond(200, &[], "");
        })
        .await;
    });
}

#[test]
fn header_rules_apply_to_scripts() {
    in_loop(async {
        let rules = "[[app.site.headers]]\nset = { X-A = \"1\" }\nremove = [\"X-Powered-By\"]\n";
        let site = Site::new(&FILES, rules);
        let respond = |php: &PhpRequest| php.respond(200, &["X-Powered-By: PHP", "X-A: 0"], "");
        let response = site.with_php("GET", "/", "", respond).await;
        assert_eq!(response.header("x-a"), Some("1"));
        assert_eq!(response.header("x-powered-by"), None);
    });
}

#[test]
fn configured_parameters_are_passed_on() {
    in_loop(async {
        let site = Site::new(&FILES, "[app.site.php]\nparams = { SITE = \"one\" }\n");
        site.with_php("GET", "/", "", |php| {
            assert!(php.view().params().any(|param| param == (&b"SITE"[..], &b"one"[..])));
            php.respond(200, &[], "");
        })
        .await;
    });
}

#[test]
fn a_body_with_another_length_than_announced_is_sent_with_its_own() {
    in_loop(async {
        let site = Site::new(&FILES, "");
        let respond = |php: &PhpRequest| php.respond(200, &["Content-Length: 100"], "short");
        let response = site.with_php("GET", "/", "", respond).await;
        assert_eq!((response.header("content-length"), &response.body[..]), (Some("5"), "short"));
        let respond = |php: &PhpRequest| php.respond(200, &["Content-Length: 100"], "");
        let response = site.with_php("HEAD", "/", "", respond).await;
        assert_eq!((response.header("content-length"), &response.body[..]), (Some("100"), ""));
    });
}
