//! Responses that a client requests and does not read.

use super::client::{Client, settings};
use super::*;
use crate::abused::Abused;
use quinn_proto::{Dir, StreamId, TransportConfig};

/// RFC 9000 4.6: what the server allows.
const STREAMS: usize = 128;
const CONNECTIONS: usize = 8;
/// Of which the gateway needs so much at most.
const STREAM_BYTES: u64 = 32 << 10;
const CONNECTION_BYTES: u64 = 1 << 20;

/// So many streams of a large file on each connection, which allows so much data on each stream.
fn requested(site: &Abused, window_bytes: u32) -> Vec<(Client, Vec<StreamId>)> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(window_bytes.into()).receive_window(u32::MAX.into());
    let settings = settings(site, transport);
    let begin = |_| {
        let mut client = Client::connect_with(site, settings.clone());
        let get = request(GET, "/large.txt");
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            streams.extend(client.send(Dir::Bi, &get));
        }
        client.turn();
        (client, streams)
    };
    (0..CONNECTIONS).map(begin).collect()
}

/// All are open at a time, and take little.
#[track_caller]
fn are_little(source: &str, site: &Abused, clients: &mut [(Client, Vec<StreamId>)]) {
    let streams = (CONNECTIONS * STREAMS) as u64;
    eventually_within(RECOVERED_WITHIN, "all streams are open", || {
        clients.iter_mut().for_each(|(client, _)| client.turn());
        let open = site.open_streams();
        if open == streams { Ok(()) } else { Err(open) }
    });
    let bytes = site.more_bytes();
    println!("{source:<28} {CONNECTIONS} connections, {streams} streams: {} KiB more", bytes >> 10);
    let most = CONNECTIONS as u64 * CONNECTION_BYTES + streams * STREAM_BYTES;
    assert!(bytes <= most, "{bytes} bytes");
}

/// The client acknowledges all, and allows nothing more.
#[test]
fn streams_without_a_window_are_reset() {
    let site = Abused::start();
    let mut clients = requested(&site, 16);
    are_little("HTTP/3 window of 16", &site, &mut clients);
    let mut left: Vec<(usize, StreamId)> = Vec::new();
    for (number, (_, streams)) in clients.iter().enumerate() {
        left.extend(streams.iter().map(|stream| (number, *stream)));
    }
    eventually_within(RECOVERED_WITHIN, "all streams are reset", || {
        clients.iter_mut().for_each(|(client, _)| client.turn());
        left.retain(|(number, stream)| {
            let client = &mut clients[*number].0;
            assert!(!client.is_lost());
            !client
                .connection
                .recv_stream(*stream)
                .received_reset()
                .is_ok_and(|reset| reset.is_some())
        });
        if left.is_empty() { Ok(()) } else { Err(left.len()) }
    });
    site.ends_unharmed("HTTP/3 window of 16");
}

/// The windows are as wide as they can be, but nothing is acknowledged.
#[test]
fn streams_of_a_silent_client_end() {
    let site = Abused::start();
    let mut clients = requested(&site, 16 << 20);
    are_little("HTTP/3 unread", &site, &mut clients);
    eventually_within(RECOVERED_WITHIN, "the server has given up", || {
        let open = site.open_streams();
        if open == 0 { Ok(()) } else { Err(open) }
    });
    drop(clients);
    site.ends_unharmed("HTTP/3 unread");
}
