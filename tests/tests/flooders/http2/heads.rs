//! Heads that do not end, that expand to more than they are, and connections without one.

use super::client::{Client, PREFACE};
use super::*;
use crate::abused::Abused;
use outboard_e2e::{Wire, connect, read_to_any_end};

/// More than there are places in the queue of the app, on connections of their own.
const CONNECTIONS: usize = 50;
const ENHANCE_YOUR_CALM: u32 = 11;

#[test]
fn connections_without_a_request_end() {
    let site = Abused::start();
    let pieces: [&[u8]; 4] = [b"", &PREFACE[..9], PREFACE, &[PREFACE, &[0, 0, 0, 4]].concat()];
    let mut streams: Vec<TcpStream> = Vec::new();
    for piece in pieces.iter().copied().cycle().take(4 * CONNECTIONS) {
        let mut stream = connect(site.plain());
        stream.write_all(piece).expect("the server reads");
        streams.push(stream);
    }
    // The server has the last word: each read ends within the patience of a test.
    streams.iter_mut().for_each(|stream| drop(read_to_any_end(stream)));
    site.ends_unharmed("HTTP/2 prefaces");
}

#[test]
fn heads_that_stop_midway_end_the_connection() {
    let site = Abused::start();
    let head = head(GET);
    let (first, rest) = head.split_at(5);
    let whole = frame(HEADERS, 0, 1, first);
    let pieces = [
        // In the head of the frame, in its payload, between the frames, and in CONTINUATION.
        whole[..4].to_vec(),
        whole[..11].to_vec(),
        whole.clone(),
        [&whole[..], &frame(CONTINUATION, 0, 1, &rest[..3])].concat(),
    ];
    let begin = |number: usize| {
        let mut client = Client::plain(&site, &[]);
        client.send(&pieces[number % pieces.len()]);
        client
    };
    let clients: Vec<Client> = (0..CONNECTIONS).map(begin).collect();
    for mut client in clients {
        client.end();
    }
    site.ends_unharmed("HTTP/2 heads that stop");
}

/// A field of 4,000 bytes in the dynamic table, and one byte for each reference to it (RFC 7541 7.3).
#[test]
fn references_to_a_large_field_take_no_memory() {
    let site = Abused::start();
    let value = [b'v'; 3_900];
    // A literal that is added to the table; its length is 127 and two more bytes (RFC 7541 5.1).
    let rest = value.len() - 127;
    let length = [0x7f, 0x80 | (rest & 0x7f) as u8, (rest >> 7) as u8];
    let entry = [&[0x40, 1, b'a'][..], &length, &value].concat();
    let references = |count: usize| [head(GET), vec![0xbe; count]].concat();
    for mut client in Client::both(&site, &[]) {
        client.send(&frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            1,
            &[head(GET), entry.clone()].concat(),
        ));
        assert_eq!(client.body(1), b"Hello, world\n");
        for number in 1..CONNECTIONS as u32 {
            let bomb = references(16_000);
            client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &bomb));
        }
        assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM));
    }
    // A little too long: the request is refused, not the connection (RFC 9113 10.5.1).
    let mut client = Client::plain(&site, &[]);
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &[head(GET), entry].concat()));
    assert_eq!(client.body(1), b"Hello, world\n");
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &references(12)));
    assert!(String::from_utf8_lossy(&client.body(3)).contains("431"));
    site.ends_unharmed("HTTP/2 HPACK bomb");
}

/// The peer chooses how much the encoder of the server stores (RFC 7541 4.2).
#[test]
fn a_large_table_of_the_client_takes_no_memory() {
    let site = Abused::start();
    let settings = [&[0, 1][..], &[0xff; 4]].concat();
    let mut clients: Vec<Client> =
        (0..CONNECTIONS).map(|_| Client::plain(&site, &settings)).collect();
    for number in 0..5 {
        for client in &mut clients {
            let stream = 2 * number + 1;
            client.send(&frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                stream,
                &head_of(GET, "/no.txt"),
            ));
            client.body(stream);
        }
    }
    assert!(site.more_bytes() < 64 << 20, "{} bytes", site.more_bytes());
    drop(clients);
    site.ends_unharmed("HTTP/2 table of 4 GiB");
}

/// RFC 9113 6.8: what has begun is completed.
#[test]
fn requests_before_a_goaway_are_served() {
    let site = Abused::start();
    for mut client in Client::both(&site, &[]) {
        let request = frame(HEADERS, END_STREAM | END_HEADERS, 1, &head(GET));
        let goaway = frame(GOAWAY, 0, 0, &[0; 8]);
        client.send(&[request, goaway.repeat(1_000)].concat());
        assert_eq!(client.body(1), b"Hello, world\n");
    }
    site.ends_unharmed("HTTP/2 GOAWAY");
}

/// RFC 9113 3.1: the upgrade is obsolete, and a server may ignore it (RFC 9110 7.8).
#[test]
fn an_upgrade_to_http2_is_ignored() {
    let site = Abused::start();
    let mut wire = Wire::open(site.plain());
    wire.send(
        "GET /hello.php HTTP/1.1\r\nHost: site\r\nConnection: Upgrade, HTTP2-Settings, close\r\n\
         Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    );
    let response = wire.to_end();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with("Hello, world\n"), "{response}");
    site.ends_unharmed("HTTP/2 Upgrade");
}
