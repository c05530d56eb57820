//! Upstreams that are not what they are taken for.

use outboard_e2e::{Configured, Protocol, Request, connect};
use std::io::{Read, Write};
use std::net::TcpListener;

/// Serves one connection with these bytes once a head has come.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        stream.write_all(bytes).unwrap();
        // The other side ends it.
        let _ = stream.read(&mut [0]);
    });
    url
}

/// Caddy CVE-2026-55458 and GO-2026-6874: fields of a connection end at the gateway (RFC 9110 7.6.1), in `101`
/// as well.
#[test]
fn a_switch_passes_on_no_field_of_the_connection() {
    if Protocol::of_run() != Protocol::Http1 {
        return;
    }
    let upstream = answering(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Internal\r\nUpgrade: websocket\r\n\
          X-Internal: secret\r\nKeep-Alive: timeout=5\r\n\
          Proxy-Connection: keep-alive\r\nTrailer: X-T\r\nX-Kept: yes\r\n\r\n",
    );
    let tables = format!("[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{upstream}\"\n");
    let site = Configured::serving("advisories", &tables);
    let mut stream = connect(site.address());
    let request = Request::get("/").header("Connection", "Upgrade").header("Upgrade", "websocket");
    let request = request
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    stream.write_all(&request.to_bytes("site")).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("\r\nx-kept: yes\r\n"), "{head}");
    for name in ["x-internal", "keep-alive", "proxy-connection", "trailer"] {
        assert!(!head.contains(&format!("\r\n{name}:")), "{name} in {head}");
    }
}
