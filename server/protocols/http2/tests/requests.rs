//! What the server learns of requests, and which of them are refused.

mod support;

use outboard_http2::{ConnectionError, ErrorCode, Event, PREFACE, SendError, Settings};
use support::*;

fn data(client: &mut Client, id: u32, bytes: &[u8], is_end: bool) {
    client.send(DATA, u8::from(is_end), id, bytes);
}

#[test]
fn a_request_has_a_head_and_a_body() {
    let mut client = Client::new();
    let stream = client.post(1);
    data(&mut client, 1, b"ab", false);
    data(&mut client, 1, b"", false);
    data(&mut client, 1, b"c", true);
    let expected = [
        Happened::Data { stream, data: b"ab".into(), is_end: false },
        Happened::Data { stream, data: b"c".into(), is_end: true },
    ];
    assert_eq!(client.poll().unwrap(), expected);
    assert_eq!(client.connection.open_streams(), 1);
    data(&mut client, 1, b"", true);
    let reset = Happened::Reset { stream, code: ErrorCode::STREAM_CLOSED, is_by_client: false };
    assert_eq!(client.poll().unwrap(), [reset]);
    assert_eq!(client.reset_code(1), ErrorCode::STREAM_CLOSED);
}

#[test]
fn input_may_arrive_byte_by_byte() {
    let mut whole = Client::silent(Settings::default());
    whole.raw(PREFACE);
    whole.send(SETTINGS, 0, 0, &[]);
    whole.request(1, "POST", &[("content-length", "3")], false);
    whole.send(DATA, PADDED, 1, b"\x02ab\0\0");
    whole.send(DATA, PADDED | END_STREAM, 1, b"\x01c\0");
    whole.request(3, "GET", &[], true);
    let mut bytes = Client::silent(Settings::default());
    let input = whole.take_input();
    whole.raw(&input);
    let events = whole.poll().unwrap();
    let mut found = Vec::new();
    for byte in input {
        bytes.raw(&[byte]);
        found.extend(bytes.poll().unwrap());
    }
    let body = |events: &[Happened]| {
        events.iter().fold((Vec::new(), 0, 0), |(mut body, ends, heads), event| match event {
            Happened::Data { data, is_end, .. } => {
                body.extend_from_slice(data);
                (body, ends + u32::from(*is_end), heads)
            }
            _ => (body, ends, heads + 1),
        })
    };
    assert_eq!(body(&events), (b"abc".to_vec(), 1, 2));
    assert_eq!(body(&found), body(&events));
}

#[test]
fn trailers_end_a_request() {
    let mut client = Client::new();
    let stream = client.post(1);
    data(&mut client, 1, b"ab", false);
    let block = client.block(&[("x", "1")]);
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    let events = client.poll().unwrap();
    let fields = vec![("x".to_owned(), "1".to_owned())];
    assert_eq!(events[1], Happened::Trailers { stream, fields });
    let stream = client.post(3);
    client.send(HEADERS, END_HEADERS, 3, &block);
    let code = ErrorCode::PROTOCOL_ERROR;
    assert_eq!(client.poll().unwrap(), [Happened::Reset { stream, code, is_by_client: false }]);
}

#[test]
fn a_body_has_the_declared_length() {
    for (length, pieces, is_valid) in [
        ("2", &["ab"][..], true),
        ("2", &["a", "b"], true),
        ("2", &["a"], false),
        ("2", &["abc"], false),
        ("2", &["a", "bc"], false),
        ("0", &[""], true),
        ("0", &["a"], false),
        ("1", &[""], false),
    ] {
        let mut client = Client::new();
        client.request(1, "POST", &[("content-length", length)], false);
        let stream = client.opened();
        for (at, piece) in pieces.iter().enumerate() {
            data(&mut client, 1, piece.as_bytes(), at + 1 == pieces.len());
        }
        let last = client.poll().unwrap().pop().unwrap();
        let code = ErrorCode::PROTOCOL_ERROR;
        let reset = Happened::Reset { stream, code, is_by_client: false };
        assert_eq!(last != reset, is_valid, "{length} {pieces:?}");
    }
    let mut client = Client::new();
    client.request(1, "POST", &[("content-length", "2")], true);
    assert_eq!(client.poll().unwrap(), []);
    assert_eq!(client.reset_code(1), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn a_malformed_request_is_reset_and_the_connection_goes_on() {
    let mut client = Client::new();
    client.request(1, "GET", &[("connection", "close")], true);
    assert_eq!(client.poll().unwrap(), []);
    assert_eq!(client.reset_code(1), ErrorCode::PROTOCOL_ERROR);
    client.get(3);
}

#[test]
fn too_large_a_head_can_be_answered() {
    let mut client = Client::new();
    let long = "x".repeat(9_000);
    let fields = [("a", &long[..]), ("b", &long), ("c", &long), ("d", &long), ("e", &long)];
    let block = client.block(&[&[(":method", "GET")], &fields[..]].concat());
    let (first, second) = block.split_at(16_384);
    client.send(HEADERS, END_STREAM, 1, first);
    let last = second.len() - 16_384;
    client.send(CONTINUATION, 0, 1, &second[..last]);
    client.send(CONTINUATION, END_HEADERS, 1, &second[last..]);
    let events = client.poll().unwrap();
    let [Happened::HeadTooLarge(stream)] = events[..] else { panic!("{events:?}") };
    client.connection.send_head(stream, 431, [], true).unwrap();
    let frames = client.frames();
    assert_eq!(client.fields(&frames[0].payload), [(":status".into(), "431".into())]);
    // The table of the decoder is still that of the client.
    client.request(3, "GET", &[("a", "b")], true);
    client.opened();
}

#[test]
fn a_head_can_be_exchanged_for_an_empty_one() {
    let mut client = Client::new();
    client.request(1, "GET", &[("x", "1")], true);
    let input = client.take_input();
    let mut rest = &input[..];
    let event = client.connection.receive(&mut rest, 0).unwrap();
    let Some(Event::Head { head, .. }) = event else { panic!("{event:?}") };
    let kept = std::mem::take(head);
    client.get(3);
    assert_eq!((kept.path(), kept.fields().get(b"x")), (&b"/1"[..], Some(&b"1"[..])));
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let settings = Settings { max_concurrent_streams: 2, ..Settings::default() };
    let mut client = Client::with(settings);
    let first = client.get(1);
    client.get(3);
    client.request(5, "GET", &[], true);
    assert_eq!(client.poll().unwrap(), []);
    assert_eq!(client.reset_code(5), ErrorCode::REFUSED_STREAM);
    head(&mut client.connection, first, true);
    client.get(7);
}

#[test]
fn a_reset_ends_a_stream_and_what_is_sent_on_it() {
    let mut client = Client::new();
    let stream = client.post(1);
    client.send(RST_STREAM, 0, 1, &8u32.to_be_bytes());
    let code = ErrorCode::CANCEL;
    assert_eq!(client.poll().unwrap(), [Happened::Reset { stream, code, is_by_client: true }]);
    assert!(!client.connection.is_open(stream));
    let sent = client.connection.send_head(stream, 200, [], true);
    assert_eq!(sent, Err(SendError::StreamClosed));
    assert_eq!(client.frames(), []);
}

#[test]
fn what_was_on_its_way_to_a_reset_stream_is_ignored() {
    let mut client = Client::new();
    let stream = client.post(1);
    client.connection.reset(stream, ErrorCode::CANCEL);
    assert_eq!(client.reset_code(1), ErrorCode::CANCEL);
    data(&mut client, 1, b"late", false);
    client.window_update(1, 5);
    let block = client.block(&[("x", "1")]);
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    client.send(RST_STREAM, 0, 1, &8u32.to_be_bytes());
    assert_eq!(client.poll().unwrap(), []);
    assert_eq!(client.frames(), []);
}

#[test]
fn frames_that_violate_the_protocol_end_the_connection() {
    use ConnectionError::*;
    type Case<'a> = (u8, u8, u32, &'a [u8], ConnectionError);
    let cases: &[Case] = &[
        (DATA, 0, 0, b"a", InvalidStreamId),
        (DATA, 0, 3, b"a", IdleStream),
        (DATA, PADDED, 1, b"", InvalidFrameLength),
        (DATA, PADDED, 1, b"\x02a", InvalidPadding),
        (DATA, 0, 1, &[0; 16_385], FrameTooLong),
        (HEADERS, END_HEADERS, 0, b"", InvalidStreamId),
        (HEADERS, END_HEADERS, 2, b"", InvalidStreamId),
        (HEADERS, END_HEADERS | PADDED, 3, b"\x01", InvalidPadding),
        (HEADERS, END_HEADERS | 0x20, 3, b"\0\0\0\0", InvalidFrameLength),
        (HEADERS, END_HEADERS, 3, b"\x80", InvalidFieldBlock),
        (PRIORITY, 0, 1, b"\0\0\0\0", InvalidFrameLength),
        (PRIORITY, 0, 0, b"\0\0\0\0\0", InvalidStreamId),
        (RST_STREAM, 0, 0, &[0; 4], InvalidStreamId),
        (RST_STREAM, 0, 3, &[0; 4], IdleStream),
        (RST_STREAM, 0, 1, &[0; 3], InvalidFrameLength),
        (SETTINGS, 0, 1, b"", InvalidStreamId),
        (SETTINGS, 0, 0, &[0; 5], InvalidFrameLength),
        (SETTINGS, ACK, 0, &[0; 6], InvalidFrameLength),
        (SETTINGS, 0, 0, b"\0\x02\0\0\0\x02", InvalidSetting),
        (SETTINGS, 0, 0, b"\0\x04\x80\0\0\0", InvalidInitialWindow),
        (5, 0, 1, &[0; 4], PushByClient),
        (PING, 0, 1, &[0; 8], InvalidStreamId),
        (PING, 0, 0, &[0; 7], InvalidFrameLength),
        (GOAWAY, 0, 1, &[0; 8], InvalidStreamId),
        (GOAWAY, 0, 0, &[0; 7], InvalidFrameLength),
        (WINDOW_UPDATE, 0, 0, &[0; 4], EmptyWindowUpdate),
        (WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff], WindowOverflow),
        (WINDOW_UPDATE, 0, 3, &[0, 0, 0, 1], IdleStream),
        (WINDOW_UPDATE, 0, 1, &[0; 3], InvalidFrameLength),
        (CONTINUATION, END_HEADERS, 1, b"", ContinuationExpected),
        (PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01u=1", InvalidPriorityUpdate),
        (PRIORITY_UPDATE, 0, 0, b"\0\0\0\0u=1", InvalidPriorityUpdate),
        (PRIORITY_UPDATE, 0, 0, b"\0\0\0", InvalidFrameLength),
    ];
    for &(kind, flags, id, payload, error) in cases {
        let mut client = Client::new();
        client.post(1);
        client.send(kind, flags, id, payload);
        client.expect_error(error);
        client.send(PING, 0, 0, &[0; 8]);
        assert_eq!(client.poll(), Err(error), "an error is final");
    }
}

#[test]
fn the_preface_comes_first_and_then_settings() {
    let mut client = Client::silent(Settings::default());
    client.raw(b"GET / HTTP/1.1\r\n");
    client.expect_error(ConnectionError::InvalidPreface);
    for (kind, flags) in [(PING, 0), (SETTINGS, ACK)] {
        let mut client = Client::silent(Settings::default());
        client.raw(PREFACE);
        client.send(kind, flags, 0, &[]);
        client.expect_error(ConnectionError::SettingsExpected);
    }
}

#[test]
fn a_block_is_not_interrupted() {
    for (kind, id) in [(PING, 0), (CONTINUATION, 3), (HEADERS, 1), (0x55, 1)] {
        let mut client = Client::new();
        client.send(HEADERS, 0, 1, b"\x82");
        client.send(kind, 0, id, &[0; 8]);
        client.expect_error(ConnectionError::ContinuationExpected);
    }
}

#[test]
fn streams_are_opened_in_ascending_order_and_once() {
    let mut client = Client::new();
    let stream = client.get(5);
    head(&mut client.connection, stream, true);
    client.frames();
    client.request(5, "GET", &[], true);
    client.expect_error(ConnectionError::ClosedStream);
    let mut client = Client::new();
    client.get(5);
    client.request(3, "GET", &[], true);
    client.expect_error(ConnectionError::InvalidStreamId);
}

#[test]
fn unknown_frames_and_pings_are_accepted() {
    let mut client = Client::new();
    client.send(0x55, 0xff, 7, b"abc");
    client.send(PING, 0, 0, b"12345678");
    client.send(PING, ACK, 0, b"abcdefgh");
    client.send(GOAWAY, 0, 0, &[0; 8]);
    let expected = [Happened::PingAck(*b"abcdefgh"), Happened::GoAway(ErrorCode::NO_ERROR)];
    assert_eq!(client.poll().unwrap(), expected);
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (PING, ACK));
    assert_eq!(frames[0].payload, b"12345678");
}

#[test]
fn extended_connect_is_accepted_and_both_ends_close_on_their_own() {
    let mut client = Client::new();
    client.request(1, "CONNECT", &[], false);
    // A plain CONNECT has no path.
    assert_eq!(client.poll().unwrap(), []);
    assert_eq!(client.reset_code(1), ErrorCode::PROTOCOL_ERROR);
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "a.test"),
    ];
    let block = client.block(&fields);
    client.send(HEADERS, END_HEADERS, 3, &block);
    let stream = client.opened();
    head(&mut client.connection, stream, false);
    client.connection.send_data(stream, b"bye", true).unwrap();
    assert_eq!(client.connection.send_data(stream, b"x", true), Err(SendError::WrongOrder));
    assert!(client.frames().iter().all(|frame| frame.kind != RST_STREAM));
    data(&mut client, 3, b"bye", true);
    assert_eq!(client.poll().unwrap().len(), 1);
    assert!(!client.connection.is_open(stream));
}
