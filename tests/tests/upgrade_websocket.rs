//! WebSocket across upgrades and reloads, by HTTP/1.1, HTTP/2 and HTTP/3: no message is lost, and connections
//! that are left at the end get a close frame.

#![forbid(unsafe_code)]

#[path = "upgrade/installed.rs"]
#[allow(dead_code)]
mod installed;

use installed::{Installed, POOL, succeeded, text, with_http3};
use outboard_e2e::{Backend, Bridge, Protocol, connect, repeating};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

/// A frame of a client, with a mask of zeros.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let length = 0x80 | u8::try_from(payload.len()).unwrap();
    [&[0x80 | opcode, length, 0, 0, 0, 0], payload].concat()
}

const CLOSE: u8 = 8;

struct WebSocket {
    stream: TcpStream,
    sent: u64,
}

impl WebSocket {
    /// Opens one. A request that a server rejects by GOAWAY was not processed, and is repeated by clients
    /// (RFC 9113 8.7, RFC 9114 4.1.1).
    fn open(address: SocketAddr, protocol: Protocol) -> WebSocket {
        (0..10).find_map(|_| WebSocket::try_open(address, protocol)).expect("a server")
    }

    fn try_open(address: SocketAddr, protocol: Protocol) -> Option<WebSocket> {
        let mut stream = connect(address);
        let request = "GET /frames HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: b3V0Ym9hcmQgaHR0cC8yIQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match stream.read_exact(&mut byte) {
                Err(_) if head.is_empty() && protocol != Protocol::Http1 => return None,
                read => read.expect("the head"),
            }
            head.extend(byte);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Some(WebSocket { stream, sent: 0 })
    }

    /// Sends a message and receives its echo; false if the server closes instead.
    fn exchange(&mut self) -> bool {
        self.sent += 1;
        let message = frame(2, &self.sent.to_le_bytes());
        self.stream.write_all(&message).unwrap();
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).expect("an echo, or a close frame");
        if head == [0x80 | CLOSE, 2] {
            let mut status = [0; 2];
            self.stream.read_exact(&mut status).unwrap();
            assert_eq!(status, 1001_u16.to_be_bytes());
            return false;
        }
        let mut echo = vec![0; message.len() - 2];
        self.stream.read_exact(&mut echo).expect("the whole echo");
        assert_eq!([&head[..], &echo].concat(), message);
        true
    }

    /// Closes it in order.
    fn close(mut self) {
        let close = frame(CLOSE, &[]);
        self.stream.write_all(&close).unwrap();
        let mut echo = vec![0; close.len()];
        self.stream.read_exact(&mut echo).expect("the response to the close frame");
        assert_eq!(echo, close);
    }
}

/// A server, and the address of its WebSockets by a protocol.
fn start(
    protocol: Protocol,
    general: &str,
    backend: &Backend,
) -> (Installed, SocketAddr, Option<Bridge>) {
    let tables = format!(
        "{POOL}\n[[app.site.proxy]]\npath = \"/frames\"\nupstream = \"{}\"\n",
        backend.url()
    );
    if protocol == Protocol::Http3 {
        let (server, address) = with_http3(general, &tables);
        let bridge = Bridge::to(address, protocol);
        return (server, bridge.address(), Some(bridge));
    }
    let text = format!("{general}{}", text(&tables));
    let server = Installed::with(outboard_e2e::Docroot::of("reload"), text);
    let bridge = (protocol == Protocol::Http2).then(|| Bridge::to(server.site.address(), protocol));
    let address = bridge.as_ref().map_or(server.site.address(), Bridge::address);
    (server, address, bridge)
}

/// Messages all the time, on connections that end by themselves.
fn no_message_is_lost(protocol: Protocol) {
    let backend = Backend::start();
    let (server, address, _bridge) = start(protocol, "drain_timeout = \"60s\"\n", &backend);
    let (messages, opened) = (AtomicU64::new(0), AtomicU64::new(0));
    let client = |is_over: &dyn Fn() -> bool| {
        while !is_over() {
            let mut socket = WebSocket::open(address, protocol);
            opened.fetch_add(1, Ordering::Relaxed);
            while !is_over() && socket.sent < 3_000 {
                assert!(socket.exchange());
            }
            messages.fetch_add(socket.sent, Ordering::Relaxed);
            socket.close();
        }
    };
    // Datagrams are passed on to the server before, and not to those before it.
    let upgrades = if protocol == Protocol::Http3 { 1 } else { 3 };
    repeating(4, client, || {
        for _ in 0..upgrades {
            succeeded(&server.site.command("reload", &[]), &server.site);
            let before = server.pid();
            succeeded(&server.upgrade(), &server.site);
            assert_ne!(server.pid(), before);
        }
    });
    let (messages, opened) = (messages.into_inner(), opened.into_inner());
    println!("{protocol:?}: {opened} WebSockets, {messages} messages, 0 lost");
    assert!(messages > 100 && opened >= 4);
}

#[test]
fn no_message_is_lost_by_http1() {
    no_message_is_lost(Protocol::Http1);
}

#[test]
fn no_message_is_lost_by_http2() {
    no_message_is_lost(Protocol::Http2);
}

#[test]
fn no_message_is_lost_by_http3() {
    no_message_is_lost(Protocol::Http3);
}

/// A connection that does not end in time is closed between two messages.
fn a_close_frame_ends_the_rest(protocol: Protocol) {
    let backend = Backend::start();
    let general = "drain_timeout = \"20s\"\nwebsocket_drain_timeout = \"500ms\"\n";
    let (server, address, _bridge) = start(protocol, general, &backend);
    let mut socket = WebSocket::open(address, protocol);
    assert!(socket.exchange());
    succeeded(&server.upgrade(), &server.site);
    while socket.exchange() {}
    socket.stream.write_all(&frame(CLOSE, &1001_u16.to_be_bytes())).unwrap();
    let mut rest = Vec::new();
    let _ = socket.stream.read_to_end(&mut rest);
    assert_eq!(rest, b"", "nothing follows the close frame");
    server.site.logs(&["info  stopped"]);
}

/// Whatever the time that it has: systemd stops all processes of the unit.
#[test]
fn a_stop_of_the_old_server_ends_its_websockets() {
    let backend = Backend::start();
    let general = "websocket_drain_timeout = \"1h\"\n";
    let (server, address, _bridge) = start(Protocol::Http1, general, &backend);
    let mut socket = WebSocket::open(address, Protocol::Http1);
    let old = i32::try_from(server.pid()).unwrap();
    succeeded(&server.upgrade(), &server.site);
    assert!(socket.exchange());
    kill_process(Pid::from_raw(old).unwrap(), Signal::TERM).unwrap();
    while socket.exchange() {}
    socket.stream.write_all(&frame(CLOSE, &1001_u16.to_be_bytes())).unwrap();
    server.site.logs(&["info  stopped"]);
}

#[test]
fn a_close_frame_ends_the_rest_by_http1() {
    a_close_frame_ends_the_rest(Protocol::Http1);
}

#[test]
fn a_close_frame_ends_the_rest_by_http2() {
    a_close_frame_ends_the_rest(Protocol::Http2);
}

#[test]
fn a_close_frame_ends_the_rest_by_http3() {
    a_close_frame_ends_the_rest(Protocol::Http3);
}
