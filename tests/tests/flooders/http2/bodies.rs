//! Responses that a client requests and does not read.

use super::client::Client;
use super::*;
use crate::abused::Abused;

/// RFC 9113 5.1.2: what the server allows.
const STREAMS: u32 = 128;
const CONNECTIONS: usize = 8;
/// Of which the gateway needs so much at most.
const STREAM_BYTES: u64 = 24 << 10;
const CONNECTION_BYTES: u64 = 512 << 10;

/// So many streams of a large file on each connection; the clients.
fn requested(site: &Abused, settings: &[u8]) -> Vec<Client> {
    let request = |number| {
        let head = head_of(GET, "/large.txt");
        frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &head)
    };
    let requests: Vec<u8> = (0..STREAMS).flat_map(request).collect();
    let mut clients: Vec<Client> =
        (0..CONNECTIONS / 2).flat_map(|_| Client::both(site, settings)).collect();
    clients.iter_mut().for_each(|client| client.send(&requests));
    clients
}

/// All are open at a time, and take little.
#[track_caller]
fn are_little(source: &str, site: &Abused) {
    let streams = CONNECTIONS as u64 * u64::from(STREAMS);
    eventually_within(RECOVERED_WITHIN, "all streams are open", || {
        let open = site.open_streams();
        if open == streams { Ok(()) } else { Err(open) }
    });
    let bytes = site.more_bytes();
    println!("{source:<28} {CONNECTIONS} connections, {streams} streams: {} KiB more", bytes >> 10);
    let most = CONNECTIONS as u64 * CONNECTION_BYTES + streams * STREAM_BYTES;
    assert!(bytes <= most, "{bytes} bytes");
}

/// RFC 9113 10.5: the client allows no data at all.
#[test]
fn streams_without_a_window_are_reset() {
    let site = Abused::start();
    let mut clients = requested(&site, &[0, 4, 0, 0, 0, 0]);
    are_little("HTTP/2 window of 0", &site);
    for client in &mut clients {
        let mut resets = 0;
        while resets < STREAMS {
            let frame = client.next().expect("the connection is in order");
            assert!(![DATA, GOAWAY].contains(&frame.kind), "{frame:?}");
            resets += u32::from(frame.kind == RST_STREAM);
        }
    }
    site.ends_unharmed("HTTP/2 window of 0");
}

/// The windows are as wide as they can be, but nothing is read from the connection.
#[test]
fn streams_of_a_connection_without_a_reader_end() {
    let site = Abused::start();
    let mut clients = requested(&site, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    let update = frame(WINDOW_UPDATE, 0, 0, &(0x7fff_ffff - 65_535_u32).to_be_bytes());
    clients.iter_mut().for_each(|client| client.send(&update));
    are_little("HTTP/2 unread", &site);
    eventually_within(RECOVERED_WITHIN, "the server has given up", || {
        let open = site.open_streams();
        if open == 0 { Ok(()) } else { Err(open) }
    });
    drop(clients);
    site.ends_unharmed("HTTP/2 unread");
}
