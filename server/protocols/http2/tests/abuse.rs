//! Floods: each ends its connection, and none takes memory.

mod support;

use outboard_http2::{ConnectionError, ErrorCode, Settings};
use support::*;

/// More than every bound.
const MANY: u32 = 50_000;

/// Sends frames until the connection ends; how many there were.
fn flood(
    client: &mut Client,
    error: ConnectionError,
    mut send: impl FnMut(&mut Client, u32),
) -> u32 {
    assert_eq!(error.code(), ErrorCode::ENHANCE_YOUR_CALM);
    for count in 0..MANY {
        send(client, 2 * count + 101);
        match client.poll() {
            Ok(_) => assert!(client.connection.unsent_bytes() < 1 << 20),
            Err(found) => {
                assert_eq!(found, error);
                let last = client.frames().pop().unwrap();
                assert_eq!((last.kind, ErrorCode(last.number(4))), (GOAWAY, error.code()));
                return count;
            }
        }
        client.frames();
    }
    panic!("{MANY} were accepted");
}

#[test]
fn rapid_resets_end_the_connection() {
    let count = flood(&mut Client::new(), ConnectionError::TooManyResets, |client, id| {
        client.request(id, "GET", &[], true);
        client.send(RST_STREAM, 0, id, &8u32.to_be_bytes());
    });
    assert_eq!(count, 200);
}

#[test]
fn resets_between_responses_are_accepted() {
    let mut client = Client::new();
    for id in (1..4_001).step_by(4) {
        let stream = client.get(id);
        head(&mut client.connection, stream, true);
        client.get(id + 2);
        client.send(RST_STREAM, 0, id + 2, &8u32.to_be_bytes());
        assert!(client.poll().is_ok(), "{id}");
        client.frames();
    }
}

#[test]
fn provoked_resets_end_the_connection() {
    // CVE-2025-8671: window updates, data, heads and priorities that require RST_STREAM.
    type Provoke = fn(&mut Client, u32);
    fn open(client: &mut Client, id: u32) {
        client.request(id, "POST", &[("content-length", "1000000")], false);
    }
    let provocations: [Provoke; 7] = [
        |client, id| {
            open(client, id);
            client.window_update(id, 0);
        },
        |client, id| {
            open(client, id);
            client.window_update(id, (1 << 31) - 1);
        },
        |client, id| {
            open(client, id);
            client.send(DATA, END_STREAM, id, b"short");
        },
        |client, id| {
            open(client, id);
            client.send(HEADERS, END_HEADERS, id, b"\x82");
        },
        |client, id| {
            open(client, id);
            (0..17).for_each(|_| client.send(DATA, 0, id, &[0; 16_384]));
        },
        |client, id| {
            client.request(id, "GET", &[], true);
            client.send(DATA, 0, id, b"after the end");
        },
        |client, id| client.request(id, "GET", &[("connection", "a")], true),
    ];
    for (at, provoke) in provocations.into_iter().enumerate() {
        let mut client = Client::new();
        let count = flood(&mut client, ConnectionError::TooManyProvokedResets, provoke);
        assert_eq!(count, 200, "{at}");
    }
}

#[test]
fn refused_streams_end_the_connection() {
    let settings = Settings { max_concurrent_streams: 1, ..Settings::default() };
    flood(&mut Client::with(settings), ConnectionError::TooManyProvokedResets, |client, id| {
        client.request(id, "GET", &[], true);
    });
}

#[test]
fn continuations_are_limited_in_number_and_bytes() {
    let mut client = Client::new();
    client.send(HEADERS, 0, 1, b"");
    (0..17).for_each(|_| client.send(CONTINUATION, 0, 1, b""));
    client.expect_error(ConnectionError::FieldBlockTooLong);
    let mut client = Client::new();
    client.send(HEADERS, 0, 1, b"");
    (0..4).for_each(|_| client.send(CONTINUATION, 0, 1, &[0x82; 16_384]));
    client.expect_error(ConnectionError::FieldBlockTooLong);
}

#[test]
fn floods_of_frames_of_the_connection_end_it() {
    let flooded = |error, send: fn(&mut Client, u32)| flood(&mut Client::new(), error, send);
    flooded(ConnectionError::TooManySettings, |client, _| client.setting(4, 5));
    flooded(ConnectionError::TooManySettings, |client, _| client.send(SETTINGS, ACK, 0, &[]));
    flooded(ConnectionError::TooManyPings, |client, _| client.send(PING, 0, 0, &[0; 8]));
    flooded(ConnectionError::TooManyPings, |client, _| client.send(PING, ACK, 0, &[0; 8]));
    flooded(ConnectionError::TooManyWindowUpdates, |client, _| client.window_update(0, 1));
    flooded(ConnectionError::TooManyPriorities, |client, id| {
        client.send(PRIORITY, 0, id, &[0; 5]);
    });
    flooded(ConnectionError::TooManyPriorities, |client, id| {
        client.send(PRIORITY_UPDATE, 0, 0, &id.to_be_bytes());
    });
    flooded(ConnectionError::TooManyStrayFrames, |client, _| client.send(0x77, 0, 0, b"a"));
}

#[test]
fn floods_of_frames_of_a_stream_end_the_connection() {
    let flooded = |error, send: fn(&mut Client, u32)| {
        let mut client = Client::new();
        client.post(1);
        flood(&mut client, error, send)
    };
    flooded(ConnectionError::TooManyEmptyFrames, |client, _| client.send(DATA, 0, 1, &[]));
    flooded(ConnectionError::TooManyEmptyFrames, |client, _| {
        client.send(DATA, PADDED, 1, &[1, 0]);
    });
    flooded(ConnectionError::TooManySmallFrames, |client, _| client.send(DATA, 0, 1, b"a"));
    flooded(ConnectionError::TooManyWindowUpdates, |client, _| client.window_update(1, 1));
}

#[test]
fn data_for_a_reset_stream_is_limited() {
    let mut client = Client::new();
    let stream = client.post(1);
    client.connection.reset(stream, ErrorCode::CANCEL);
    flood(&mut client, ConnectionError::TooManyStrayFrames, |client, _| {
        client.send(DATA, 0, 1, &[0; 100]);
    });
}

#[test]
fn references_to_a_long_field_do_not_take_memory() {
    let mut client = Client::new();
    // A literal with incremental indexing: the name "a", and 3,900 bytes.
    let entry = [&b"\x40\x01a\x7f\xbd\x1d"[..], &[b'x'; 3_900]].concat();
    let block =
        [&client.block(&[(":method", "GET"), (":scheme", "https"), (":path", "/")]), &entry[..]];
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &block.concat());
    client.opened();
    // The entry is the latest of the table.
    let bomb = [&[0x82][..], &[0xbe; 16_000]].concat();
    client.send(HEADERS, END_HEADERS | END_STREAM, 3, &bomb);
    client.expect_error(ConnectionError::FieldBlockTooLong);
    assert!(client.connection.buffer_bytes() < 256 << 10);
}

#[test]
fn a_window_is_not_exceeded() {
    let mut client = Client::new();
    let stream = client.post(1);
    (0..17).for_each(|_| client.send(DATA, 0, 1, &[0; 16_384]));
    let last = client.poll().unwrap().pop().unwrap();
    let code = ErrorCode::FLOW_CONTROL_ERROR;
    assert_eq!(last, Happened::Reset { stream, code, is_by_client: false });
    let mut client = Client::new();
    for id in (1..11).step_by(2) {
        client.request(id, "POST", &[], false);
        (0..16).for_each(|_| client.send(DATA, 0, id, &[0; 16_384]));
    }
    client.expect_error(ConnectionError::WindowExceeded);
}

#[test]
fn a_client_that_does_not_read_makes_the_connection_congested() {
    let mut client = Client::new();
    let stream = client.post(1);
    let mut count = 0;
    while !client.connection.is_congested() {
        client.now_ms += 1_000;
        (0..50).for_each(|_| client.send(PING, 0, 0, &[0; 8]));
        client.poll().unwrap();
        count += 50;
        assert!(count < 20_000);
    }
    assert!(client.connection.is_open(stream));
    client.frames();
    assert!(!client.connection.is_congested());
}
