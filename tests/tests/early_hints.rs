//! `headers_send(103)`, and 103 of an upstream: a client learns what a page will need before there is a
//! page.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Configured, Docroot, Fifo, Request, accept};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

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
        [log.access]\npath = \"off\"\n\
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

/// An upstream that has been asked, and has said what comes before an answer.
fn before_an_upstreams_answer(peer: &TcpListener, ask: impl FnOnce()) -> TcpStream {
    ask();
    let mut upstream = accept(peer);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        upstream.read_exact(&mut byte).unwrap();
        request.extend(byte);
    }
    let said = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
        HTTP/1.1 103 Early Hints\r\nConnection: X-Own\r\nX-Own: 1\r\n\
        Link: </a.css>; rel=preload\r\n\r\n";
    upstream.write_all(said).unwrap();
    upstream
}

fn proxying(listen: &str) -> (Configured, TcpListener) {
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let docroot = Docroot::of("limits");
    Certificate::make(docroot.beside().path(), "one", "DNS:one.test");
    let text = format!(
        "[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n\
         [[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://{}\"\n{listen}",
        peer.local_addr().unwrap()
    );
    (Configured::start(docroot, &text), peer)
}

#[test]
fn of_an_upstream_are_passed_on_at_once() {
    let (site, peer) = proxying("[[listen]]\naddress = \"127.0.0.1:0\"\n");
    let mut wire = site.wire();
    let mut upstream = before_an_upstreams_answer(&peer, || {
        wire.send(Request::get("/").to_bytes("a"));
    });
    // The answer has not come yet.
    wire.expect("HTTP/1.1 102 Processing\r\nVia: 1.1 outboard\r\n\r\n");
    wire.expect(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nVia: 1.1 outboard\r\n\r\n",
    );
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage").unwrap();
    assert!(wire.head().starts_with("HTTP/1.1 200 OK\r\n"));
    wire.expect("page");
}

#[test]
fn of_an_upstream_are_not_for_clients_of_http_1_0() {
    let (site, peer) = proxying("[[listen]]\naddress = \"127.0.0.1:0\"\n");
    let mut wire = site.wire();
    let mut upstream = before_an_upstreams_answer(&peer, || {
        wire.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    });
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage").unwrap();
    let answer = wire.to_end();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// The upstream's time is counted on after what it has said before.
#[test]
fn of_an_upstream_do_not_lift_its_time_limit() {
    let (site, peer) = proxying("timeout = \"500ms\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n");
    let mut wire = site.wire();
    let _silent = before_an_upstreams_answer(&peer, || {
        wire.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    });
    let answer = wire.to_end();
    assert!(answer.contains("HTTP/1.1 504 Gateway Timeout\r\n"), "{answer}");
}

#[test]
fn of_an_upstream_are_passed_on_over_http2() {
    let tls = "tls = [{ certificate = \"one.pem\", key = \"one.key\" }]";
    let (site, peer) = proxying(&format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{tls}\n"));
    let port = site.listeners()[0].trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let mut curl = Command::new("curl");
    curl.args(["-sSk", "--http2", "-D", "-", &format!("https://127.0.0.1:{port}/")]);
    let mut asked = None;
    let mut upstream = before_an_upstreams_answer(&peer, || {
        asked = Some(curl.stdout(Stdio::piped()).spawn().unwrap());
    });
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage").unwrap();
    let output = asked.unwrap().wait_with_output().unwrap();
    let heard = String::from_utf8_lossy(&output.stdout).into_owned();
    let hints = heard.find("HTTP/2 103").unwrap_or_else(|| panic!("{heard}"));
    assert!(heard[hints..].contains("link: </a.css>; rel=preload\r\n"), "{heard}");
    assert!(heard.ends_with("page") && heard.contains("HTTP/2 200"), "{heard}");
}
