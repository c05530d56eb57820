//! Floods of HTTP/2 (RFC 9113): frames that cost a client nothing and ask for work.

mod bodies;
mod client;
mod heads;
mod idle;
mod violations;

use super::*;
use outboard_e2e::Certificate;
use std::process::{Command, Stdio};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const PRIORITY_UPDATE: u8 = 0x10;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// RFC 7541 Appendix A: a method, https; a path and an authority that are written out.
fn head(method: u8) -> Vec<u8> {
    head_of(method, "/hello.php")
}

fn head_of(method: u8, path: &str) -> Vec<u8> {
    let path = [&[0x04, path.len() as u8][..], path.as_bytes()].concat();
    [&[method, 0x87][..], &path, &[0x01, 4], b"site"].concat()
}

const GET: u8 = 0x82;
const POST: u8 = 0x83;

/// Clients that begin a connection and send such pieces without end; the first is number 0.
#[track_caller]
fn is_flooded_with(source: &str, piece: fn(u32) -> Vec<u8>) {
    let docroot = docroot();
    Certificate::make(docroot.beside().path(), "one", "DNS:site");
    let own = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
               [[listen]]\naddress = \"127.0.0.2:0\"\ntls = [{ certificate = \"one.pem\", key = \"one.key\" }]\n";
    // Tables come behind the keys of the file itself.
    let text = format!("{}{own}", text("", "[app.site.pool]\nmin = 1\nmax = 1\nqueue_length = 10"));
    is_borne(source, Configured::start(docroot, &text), |site| {
        let address = tls_address(site);
        Flood::of_clients(2, move || send(address, piece))
    });
}

fn send(address: SocketAddr, piece: fn(u32) -> Vec<u8>) {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-alpn", "h2", "-servername", "site", "-connect"])
        .arg(address.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is there");
    let mut input = client.stdin.take().expect("it is piped");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    let until = Instant::now() + DEADLINE;
    for number in 0.. {
        bytes.extend(piece(number));
        if input.write_all(&bytes).is_err() || Instant::now() >= until {
            break;
        }
        bytes.clear();
    }
    let _ = client.kill();
    let _ = client.wait();
}

#[test]
fn pings_and_settings() {
    is_flooded_with("HTTP/2 PING, SETTINGS", |_| {
        [frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0, &[])].concat().repeat(500)
    });
}

#[test]
fn window_updates() {
    is_flooded_with("HTTP/2 WINDOW_UPDATE", |_| {
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]).repeat(1000)
    });
}

/// CVE-2023-44487.
#[test]
fn streams_that_are_reset_at_once() {
    is_flooded_with("HTTP/2 rapid reset", |number| {
        let one = |stream: u32| {
            let reset = frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            [frame(HEADERS, END_STREAM | END_HEADERS, stream, &head(GET)), reset].concat()
        };
        (0..10).flat_map(|other| one(2 * (10 * number + other) + 1)).collect()
    });
}

#[test]
fn heads_that_never_end() {
    is_flooded_with("HTTP/2 CONTINUATION", |number| match number {
        0 => frame(HEADERS, 0, 1, &head(GET)),
        // An indexed field, again and again.
        _ => frame(CONTINUATION, 0, 1, &[0x90; 1]).repeat(500),
    });
}

#[test]
fn empty_pieces_of_a_body() {
    is_flooded_with("HTTP/2 empty DATA", |number| match number {
        0 => frame(HEADERS, END_HEADERS, 1, &head(POST)),
        _ => frame(DATA, 0, 1, &[]).repeat(1000),
    });
}
