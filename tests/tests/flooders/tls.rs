//! Handshakes of TLS that end in nothing (RFC 8446), on the port of HTTP/1.1 and HTTP/2.

use super::clients::client_hello;
use super::*;
use crate::abused::Abused;
use outboard_e2e::{connect, read_to_any_end};

/// Half of what one address may have (`limits.connections_per_ip`).
const CONNECTIONS: usize = 2_000;
/// A fatal alert (RFC 8446 6).
const ALERT: u8 = 21;

/// Each client sends a piece of a handshake and waits for the end of the connection.
#[test]
fn handshakes_that_stop_midway_end() {
    let site = Abused::start();
    let hello = client_hello();
    let pieces = [&[][..], &hello[..1], &hello[..7], &hello[..hello.len() - 1], &hello];
    // What the allocator holds after the first is used by the second.
    for _ in 0..2 {
        let mut streams = Vec::new();
        for piece in pieces.iter().cycle().take(CONNECTIONS) {
            let mut stream = connect(site.secure());
            // One that the server has given up already is over.
            let _ = stream.write_all(piece);
            streams.push(stream);
        }
        streams.iter_mut().for_each(|stream| drop(read_to_any_end(stream)));
        println!("{CONNECTIONS} TLS connections: {} KiB more", site.more_bytes() >> 10);
    }
    site.ends_unharmed("TLS half-open");
}

#[test]
fn garbage_gets_an_alert_or_the_end() {
    let site = Abused::start();
    let hello = client_hello();
    let mut broken = hello.clone();
    broken[5..].reverse();
    let mut long = hello.clone();
    (long[3], long[4]) = (0xff, 0xff);
    let request = b"GET /hello.php HTTP/1.1\r\nHost: site\r\n\r\n".to_vec();
    let noise: Vec<u8> =
        (0..64 << 10).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let alert = [ALERT, 3, 3, 0, 2, 2, 40].to_vec();
    for piece in [broken, long, request, noise, alert].iter().cycle().take(CONNECTIONS / 10) {
        let mut stream = connect(site.secure());
        let _ = stream.write_all(piece);
        let came = read_to_any_end(&mut stream);
        // The request without TLS may have a response that says so.
        let is_plain = came.starts_with(b"HTTP/1.1 400 ");
        assert!(came.is_empty() || came[0] == ALERT || is_plain, "{came:?}");
    }
    site.ends_unharmed("TLS garbage");
}
