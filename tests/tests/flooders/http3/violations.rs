//! What a server has to close a connection for (RFC 9114 8.1, RFC 9204 8.3).

use super::client::Client;
use super::*;
use crate::abused::Abused;
use quinn_proto::{Dir, VarInt};

const STREAM_CREATION_ERROR: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const QPACK_DECOMPRESSION_FAILED: u64 = 0x200;
const QPACK_ENCODER_STREAM_ERROR: u64 = 0x201;
const QPACK_DECODER_STREAM_ERROR: u64 = 0x202;
const MESSAGE_ERROR: u64 = 0x10e;

const PUSH_PROMISE: u64 = 5;
const GOAWAY: u64 = 7;
const MAX_PUSH_ID: u64 = 0xd;
const PRIORITY_UPDATE: u64 = 0xf0700;
/// One of those that are for nothing (RFC 9114 7.2.8).
const GREASE: u64 = 0x21;

/// Behind the settings of a control stream.
fn on_control(frames: Vec<u8>) -> Vec<u8> {
    [control(), frames].concat()
}

#[test]
fn invalid_control_streams_end_the_connection() {
    let site = Abused::start();
    let settings = |payload: &[u8]| [vec![0], frame(SETTINGS, payload)].concat();
    let pushes = [frame(MAX_PUSH_ID, &[9]), frame(MAX_PUSH_ID, &[8])].concat();
    for (name, code, bytes) in [
        ("SETTINGS twice", FRAME_UNEXPECTED, on_control(frame(SETTINGS, &[]))),
        ("no SETTINGS", MISSING_SETTINGS, [vec![0], frame(GOAWAY, &[0])].concat()),
        ("a setting of HTTP/2", SETTINGS_ERROR, settings(&[2, 0])),
        ("a setting twice", SETTINGS_ERROR, settings(&[6, 1, 6, 2])),
        ("SETTINGS without end", EXCESSIVE_LOAD, settings(&[0x21, 0].repeat(1_000))),
        ("DATA", FRAME_UNEXPECTED, on_control(frame(DATA, b"x"))),
        ("HEADERS", FRAME_UNEXPECTED, on_control(request(GET, "/"))),
        ("PUSH_PROMISE", FRAME_UNEXPECTED, on_control(frame(PUSH_PROMISE, &[0]))),
        ("PING of HTTP/2", FRAME_UNEXPECTED, on_control(frame(6, &[0; 8]))),
        ("fewer pushes", ID_ERROR, on_control(pushes)),
        ("GOAWAY of nothing", FRAME_ERROR, on_control(frame(GOAWAY, &[]))),
        ("unknown frames", EXCESSIVE_LOAD, on_control(frame(GREASE, &[0; 100]).repeat(2_000))),
        ("a long unknown frame", EXCESSIVE_LOAD, on_control(frame(GREASE, &[0; 200_000]))),
        ("empty unknown frames", EXCESSIVE_LOAD, on_control(frame(GREASE, &[]).repeat(100_000))),
        (
            "PRIORITY_UPDATE",
            EXCESSIVE_LOAD,
            on_control(frame(PRIORITY_UPDATE, b"\0u=1").repeat(20_000)),
        ),
        ("a push stream", STREAM_CREATION_ERROR, vec![1, 0]),
        ("a capacity of 4,096", QPACK_ENCODER_STREAM_ERROR, vec![2, 0x3f, 0xe1, 0x1f]),
        ("an insertion", QPACK_ENCODER_STREAM_ERROR, vec![2, 0x41, b'a', 1, b'b']),
        (
            "garbage of an encoder",
            QPACK_ENCODER_STREAM_ERROR,
            [vec![2], vec![0xff; 4_000]].concat(),
        ),
        ("a section of no stream", QPACK_DECODER_STREAM_ERROR, vec![3, 0x80]),
        ("garbage of a decoder", QPACK_DECODER_STREAM_ERROR, [vec![3], vec![0xff; 4_000]].concat()),
    ] {
        let mut client = Client::connect(&site);
        let stream = client.open(Dir::Uni).expect("it is connected");
        client.write(stream, &bytes);
        assert_eq!(client.end(), code, "{name}");
    }
    site.ends_unharmed("HTTP/3 control streams");
}

#[test]
fn control_streams_that_close_end_the_connection() {
    let site = Abused::start();
    for bytes in [control(), vec![2], vec![3]] {
        for is_reset in [false, true] {
            let mut client = Client::connect(&site);
            let stream = client.open(Dir::Uni).expect("it is connected");
            client.write(stream, &bytes);
            // What was sent before it has arrived when it is served.
            let request = client.send(Dir::Bi, &request(GET, "/no.txt")).expect("it is connected");
            client.response(request, |_| ()).expect("there is a response");
            match is_reset {
                true => _ = client.connection.send_stream(stream).reset(VarInt::from_u32(0)),
                false => client.finish(stream),
            }
            assert_eq!(client.end(), CLOSED_CRITICAL_STREAM, "{bytes:?}");
        }
    }
    let mut client = Client::connect(&site);
    for _ in 0..2 {
        let stream = client.open(Dir::Uni).expect("it is connected");
        client.write(stream, &control());
    }
    assert_eq!(client.end(), STREAM_CREATION_ERROR);
    site.ends_unharmed("HTTP/3 closed control");
}

#[test]
fn invalid_request_streams_end_the_connection() {
    let site = Abused::start();
    let section = |bytes: &[u8]| frame(HEADERS, bytes);
    let then = |frames: Vec<u8>| [request(POST, "/hello.php"), frames].concat();
    for (name, code, bytes) in [
        ("DATA first", FRAME_UNEXPECTED, frame(DATA, b"x")),
        ("SETTINGS", FRAME_UNEXPECTED, then(frame(SETTINGS, &[]))),
        ("PUSH_PROMISE", FRAME_UNEXPECTED, then(frame(PUSH_PROMISE, &[0]))),
        ("HEADERS after trailers", FRAME_UNEXPECTED, then(section(&[0, 0]).repeat(2))),
        ("half a frame", FRAME_ERROR, then(vec![0, 10, b'x'])),
        ("an entry of no table", QPACK_DECOMPRESSION_FAILED, section(&[2, 0, 0x80])),
        ("an entry beyond the table", QPACK_DECOMPRESSION_FAILED, section(&[0, 0, 0xff, 0x7f])),
        (
            "many entries of no table",
            QPACK_DECOMPRESSION_FAILED,
            section(&[0xff, 0xff, 0x7f, 0, 0x80]),
        ),
        ("unknown frames", EXCESSIVE_LOAD, then(frame(GREASE, &[0; 100]).repeat(2_000))),
        ("empty DATA", EXCESSIVE_LOAD, then(frame(DATA, &[]).repeat(100_000))),
    ] {
        let mut client = Client::connect(&site);
        client.send(Dir::Bi, &bytes);
        assert_eq!(client.end(), code, "{name}");
    }
    site.ends_unharmed("HTTP/3 request streams");
}

#[test]
fn streams_of_unknown_types_are_bounded() {
    let site = Abused::start();
    let mut client = Client::connect(&site);
    while let Some(stream) = client.open(Dir::Uni) {
        client.write(stream, &varint(GREASE));
        client.finish(stream);
        assert!(stream.index() < 1_000);
    }
    assert_eq!(client.end(), EXCESSIVE_LOAD);
    site.ends_unharmed("HTTP/3 unknown streams");
}

/// RFC 9114 4.1.2: an error of the stream alone.
#[test]
fn malformed_requests_end_their_stream() {
    let site = Abused::start();
    let mut client = Client::connect(&site);
    let with = |field: &[u8]| frame(HEADERS, &[&head(GET, "/hello.php")[..], field].concat());
    let upper = with(&[0x21, b'A', 1, b'b']);
    let connection = with(b"\x27\x03connection\x05close");
    let twice = frame(HEADERS, &[&head(GET, "/hello.php")[..], &[GET]].concat());
    for (name, bytes) in [
        ("upper case", upper),
        ("connection", connection),
        ("two methods", twice),
        ("no fields", frame(HEADERS, &[0, 0])),
        ("less than announced", post_of("10")),
    ] {
        let stream = client.send(Dir::Bi, &bytes).expect("it is connected");
        assert_eq!(client.response(stream, |_| ()), Err(MESSAGE_ERROR), "{name}");
    }
    // A section that is too long; its fields are all of the static table.
    let section = [&[0, 0][..], &[GET, 0xd7, 0xc1]].concat();
    let long = frame(HEADERS, &[section, vec![0xdf; 60_000]].concat());
    let stream = client.send(Dir::Bi, &long).expect("it is connected");
    let response = client.response(stream, |_| ()).expect("there is a response");
    assert!(String::from_utf8_lossy(&response).contains("431"), "{response:?}");
    let stream = client.send(Dir::Bi, &request(GET, "/hello.php")).expect("it is connected");
    assert!(client.response(stream, |_| ()).expect("it is in order").ends_with(b"Hello, world\n"));
    site.ends_unharmed("HTTP/3 malformed requests");
}
