//! `headers_send(103)`: a client of HTTP/1.1 is told what a page will need before there is a page.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Fifo, Request};

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n\r\n";
const PAGE: &str = "HTTP/1.1 200 OK\r\n\
    Server: outboard\r\n\
    Link: </style.css>; rel=preload; as=style\r\n\
    X-Late: 1\r\n\
    Content-type: text/html; charset=UTF-8\r\n\
    Content-Length: 16\r\n\r\n\
    sent [200,false]";

fn serving() -> Configured {
    let text = "listen = \"127.0.0.1:0\"\n\
        [log.access]\nto = \"off\"\n\
        [php.ini]\nexpose_php = false\noutput_buffering = 4096\n\
        [app.site]\nroot = \"www\"\nmode = \"worker\"\nworker.script = \"www/worker.php\"\n";
    Configured::start(Docroot::of("early_hints"), text)
}

#[test]
fn come_before_the_page() {
    let site = serving();
    let mut gate = Fifo::at(site.docroot().beside().path().join("gate"));
    let mut wire = site.wire();
    let target = format!("/?gate={}", gate.path().display());
    wire.send(Request::get(&target).to_bytes("a"));
    wire.expect(HINTS);
    gate.open();
    wire.expect_undated(PAGE);
    // The connection serves on.
    wire.send(Request::get("/").to_bytes("a"));
    wire.expect(HINTS);
    wire.expect_undated(PAGE);
}

#[test]
fn are_not_for_clients_of_http_1_0() {
    let site = serving();
    let answer = site.exchange("GET / HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("Link: </style.css>"), "{answer}");
}

#[test]
fn do_not_follow_the_head() {
    let site = serving();
    let mut wire = site.wire();
    wire.send("GET /?later=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    wire.expect(HINTS);
    let answer = wire.to_end();
    assert!(!answer.contains("103 Early Hints"), "{answer}");
}
