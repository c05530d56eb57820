//! Refusals in the logs: each with the client's address, where fail2ban finds it and nothing that a
//! client writes can pass for it.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Protocol, Request};
use regex::Regex;

/// The filter of the guide, with an address where fail2ban wants one.
fn filter() -> Regex {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/logs.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let line = guide.lines().find_map(|line| line.strip_prefix("failregex = ")).unwrap();
    Regex::new(&line.replace("<ADDR>", "(?P<address>[0-9a-fA-F.:]+)")).unwrap()
}

fn site() -> Configured {
    let docroot = Docroot::of("routing");
    let text = "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"stdout\"\n\
                [app.site]\nroot = \"www\"\n[limits]\nheader_timeout = \"300ms\"\n";
    Configured::start(docroot, text)
}

/// Everything that was logged once the last of it is there.
fn logged(site: &Configured, last: &str) -> Vec<String> {
    site.child().wait_for(|line| line.contains(last).then_some(())).expect("it is logged");
    site.child().output().lines().map(str::to_owned).collect()
}

#[test]
fn an_invalid_request_is_in_the_access_log() {
    let site = site();
    for (bytes, status) in [
        (&b"GET /no-host HTTP/1.1\r\n\r\n"[..], "400"),
        (b"BREW /half", "408"),
        (b"GET /\x01\"x HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        (b"\r\n\r\nwords\r\n\r\n", "400"),
        (b"GET /old HTTP/3.7\r\n\r\n", "505"),
    ] {
        let answer = site.exchange(bytes);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    let long = format!("GET /long HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(200_000));
    let mut wire = site.wire();
    wire.send(long);
    assert!(wire.head().starts_with("HTTP/1.1 431 "));
    logged(&site, "\"GET /long HTTP/1.1\" 431 0 \"-\" \"-\"");
    for expected in [
        "\"GET /no-host HTTP/1.1\" 400 0 ",
        "\"BREW /half -\" 408 0 ",
        "\"words - -\" 400 0 ",
        "\"GET /old HTTP/3.7\" 505 0 ",
    ] {
        // Each thread of the server writes its lines when it comes to it.
        let lines = logged(&site, expected);
        let found = lines
            .iter()
            .filter(|line| line.starts_with("127.0.0.1 - - [") && line.contains(expected));
        assert_eq!(found.count(), 1, "{expected} in {lines:#?}");
    }
    // A quote, or a control byte, ends nothing.
    logged(&site, "/\\x01\\\"x");
}

#[test]
fn the_guides_fail2ban_filter_matches_scanners_alone() {
    let site = site();
    let filter = filter();
    site.client().send(&Request::get("/.env")).expect(404);
    site.client().send(&Request::get("/.git/reason=denied"));
    site.client().send(&Request::get("/.git/%20client=192.0.2.9%20"));
    site.client().send(&Request::get("/not-there?reason=denied+status=404+client=192.0.2.9+"));
    site.exchange(b"GET / HTTP/1.1\r\nHost: reason=denied status=404 client=192.0.2.9 \r\n\r\n");
    site.exchange(b"nonsense\r\n\r\n");
    site.client().send(&Request::get("/.last")).expect(404);
    let lines = logged(&site, " GET /.last");
    let refused = lines.iter().filter_map(|line| Some(line.split_once(' ')?.1));
    let found: Vec<String> =
        refused.filter_map(|line| Some(filter.captures(line)?["address"].to_owned())).collect();
    assert!(found.len() >= 5, "{found:?} in {lines:#?}");
    assert!(found.iter().all(|address| address == "127.0.0.1"), "{found:?} in {lines:#?}");
}

/// Where there is one app, its rules are for what nobody has asked for in a readable way, too.
#[test]
fn header_rules_decide_about_the_server_line_and_about_refusals() {
    const SAFE: &str = "X-Content-Type-Options: nosniff";
    let docroot = Docroot::of("routing");
    docroot.put("a.php", "<?php echo 'made';");
    docroot.put("a.txt", "kept");
    let text = Configured::text(
        "[app.site.page_cache]\nmode = \"on\"\n[[app.site.headers]]\nremove = [\"Server\"]\n\
         set = { X-Content-Type-Options = \"nosniff\" }\n",
    );
    let site = Configured::start(docroot, &text);
    for (request, status) in [
        ("GET /a.php HTTP/1.1\r\nHost: a\r\n", 200),
        // From the cache.
        ("GET /a.php HTTP/1.1\r\nHost: a\r\n", 200),
        ("GET /a.txt HTTP/1.1\r\nHost: a\r\n", 200),
        ("GET /.env HTTP/1.1\r\nHost: a\r\n", 404),
        ("GET /%zz HTTP/1.1\r\nHost: a\r\n", 400),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n", 405),
        ("GET / HTTP/1.1\r\n", 400),
    ] {
        if !request.contains("Host") && Protocol::of_run() != Protocol::Http1 {
            // No client library of the others sends that.
            continue;
        }
        let answer = site.exchange(format!("{request}Connection: close\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(answer.contains(SAFE) && !answer.contains("Server:"), "{request}: {answer}");
    }
    site.rewrite(
        &text.replace("remove = [\"Server\"]", "").replace("set = {", "set = { Server = \"x\","),
    );
    assert!(site.command("reload", &[]).status.success());
    for path in ["/a.php", "/a.php", "/a.txt", "/.env"] {
        let answer = site.client().send(&Request::get(path));
        assert_eq!(answer.all("server").collect::<Vec<_>>(), ["x"], "{path}");
    }
}
