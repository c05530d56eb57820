//! WebSocket through routes that another server answers.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Configured, Docroot, Protocol, Request, connect, eventually, read_to_any_end,
};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

fn serving(backend: &Backend, more: &str) -> Configured {
    let url = backend.url();
    let tables = format!("[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{url}\"\n{more}\n");
    Configured::serving("page_cache", &tables)
}

fn offering(target: &str, protocol: &str) -> Request {
    Request::get(target)
        .header("Connection", "keep-alive, Upgrade")
        .header("Upgrade", protocol)
        .header("Sec-WebSocket-Version", "13")
}

/// A connection that has been switched, after its head.
fn switched(site: &Configured) -> (TcpStream, String) {
    let mut stream = connect(site.address());
    let request = offering("/switch", "WebSocket");
    stream.write_all(&request.to_bytes(&site.address().to_string())).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    (stream, String::from_utf8(head).unwrap())
}

#[test]
fn both_sides_switch_and_talk_until_they_have_said_all() {
    let backend = Backend::start();
    let site = serving(&backend, "");
    let (mut stream, head) = switched(&site);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    for line in ["Connection: upgrade", "Upgrade: websocket"] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
    // Other versions have no key (RFC 8441, section 5), so there is nothing to prove.
    let is_proven = head.contains("\r\nSec-WebSocket-Accept: of-the-upstream\r\n");
    assert_eq!(is_proven, Protocol::of_run() == Protocol::Http1, "{head}");
    let mut said = [0; 6];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"hello ");
    stream.write_all(b"one").unwrap();
    stream.read_exact(&mut said[..3]).unwrap();
    assert_eq!(&said[..3], b"one");
    stream.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, " bye");
}

#[test]
fn an_idle_tunnel_is_closed_after_its_time_out() {
    let backend = Backend::start();
    let site = serving(&backend, "tunnel_timeout = \"2s\"");
    let (mut stream, _) = switched(&site);
    let mut said = [0; 6];
    stream.read_exact(&mut said).unwrap();
    let began = std::time::Instant::now();
    // Open for longer than that: each message may come as late as the time-out.
    eventually("the time-out of the first message has passed", || {
        stream.write_all(b"one").unwrap();
        stream.read_exact(&mut said[..3]).unwrap();
        began.elapsed().as_millis() > 2_500
    });
    assert_eq!(read_to_any_end(&mut stream), b"");
}

#[test]
fn as_much_as_one_likes_goes_both_ways_at_once() {
    const BYTES: usize = 8 << 20;
    let backend = Backend::start();
    let site = serving(&backend, "");
    let (stream, _) = switched(&site);
    let mut writing = stream.try_clone().unwrap();
    let writer = thread::spawn(move || {
        for piece in 0..BYTES / 4096 {
            writing.write_all(&[piece as u8; 4096]).unwrap();
        }
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    (&stream).read_to_end(&mut back).unwrap();
    writer.join().unwrap();
    let middle = back.strip_prefix(b"hello ").and_then(|rest| rest.strip_suffix(b" bye"));
    let middle = middle.expect("the upstream says hello and bye");
    assert_eq!(middle.len(), BYTES);
    let is_right = |(at, piece): (usize, &[u8])| piece.iter().all(|&byte| byte == at as u8);
    assert!(middle.chunks(4096).enumerate().all(is_right));
}

#[test]
fn a_refused_switch_is_an_ordinary_response() {
    let backend = Backend::start();
    let site = serving(&backend, "");
    let request = offering("/status/403", "websocket");
    assert_eq!(site.client().send(&request).expect(403).text(), "a body of the upstream");
}

/// A client of HTTP/2 or HTTP/3 takes each 2xx for a tunnel (RFC 8441, section 5).
#[test]
fn what_does_not_switch_is_not_taken_for_a_tunnel() {
    let backend = Backend::start();
    let url = backend.url();
    let docroot = Docroot::of("supervision");
    docroot.put("file.txt", "a file");
    let tables = format!(
        "[app.site.static]\n[[app.site.proxy]]\npath = \"/status/*\"\nupstream = \"{url}\"\n\
         [admin]\nmetrics = \"/-/metrics\"\n"
    );
    let site = Configured::start(docroot, &Configured::text(&tables));
    for (target, refused) in
        [("/hello.php", 501), ("/file.txt", 501), ("/-/metrics", 404), ("/status/200", 502)]
    {
        let response = site.client().send(&offering(target, "websocket"));
        let expected = if Protocol::of_run() == Protocol::Http1 { 200 } else { refused };
        assert_eq!(response.status, expected, "{target}: {response:?}");
    }
}

#[test]
fn no_other_protocol_is_handed_through() {
    let backend = Backend::start();
    let site = serving(&backend, "");
    for protocol in ["h2c", "websocket, h2c", "tls/1.3"] {
        let heard = site.client().send(&offering("/echo", protocol)).expect(200).text();
        assert!(!heard.to_lowercase().contains("\r\nupgrade:"), "{protocol}: {heard}");
    }
    let post = Request::new("POST", "/echo")
        .header("Connection", "upgrade")
        .header("Upgrade", "websocket")
        .body("x");
    assert!(!site.client().send(&post).expect(200).text().to_lowercase().contains("\r\nupgrade:"));
}

#[test]
fn the_page_cache_has_nothing_to_do_with_it() {
    let backend = Backend::start();
    let site = serving(&backend, "[app.site.page_cache]\nmode = \"on\"");
    site.client().get("/switch").expect(404);
    for _ in 0..2 {
        let (_, head) = switched(&site);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    }
}

#[test]
fn a_server_that_stops_does_not_wait_for_it() {
    let backend = Backend::start();
    let site = serving(&backend, "");
    let (mut stream, _) = switched(&site);
    site.child().signal(rustix::process::Signal::TERM);
    read_to_any_end(&mut stream);
    assert_eq!(site.child().wait(), Some(0));
}
