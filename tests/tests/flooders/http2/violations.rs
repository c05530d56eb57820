//! Frames that a server has to end a connection for, without TLS and with it.

use super::client::Client;
use super::*;
use crate::abused::Abused;

// RFC 9113 7.
const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const FRAME_SIZE_ERROR: u32 = 6;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// On each connection the server ends with this error, and only it.
#[track_caller]
fn ends_with(site: &Abused, name: &str, code: u32, frames: &[u8]) {
    for (mut client, transport) in Client::both(site, &[]).into_iter().zip(["TCP", "TLS"]) {
        client.send(frames);
        assert_eq!(client.end(), Some(code), "{name}, {transport}");
    }
}

/// So many streams with these frames, one after the other.
fn streams(count: u32, frames: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(|number| frames(2 * number + 1)).collect()
}

fn post(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &head(POST))
}

/// A request with a body of so many bytes (RFC 7541 Appendix A: `content-length`).
fn post_of(stream: u32, length: &str) -> Vec<u8> {
    let length = [&[0x0f, 13, length.len() as u8][..], length.as_bytes()].concat();
    frame(HEADERS, END_HEADERS, stream, &[head(POST), length].concat())
}

#[test]
fn floods_of_frames_end_the_connection() {
    let site = Abused::start();
    let one = |kind, stream, payload: &[u8], count| frame(kind, 0, stream, payload).repeat(count);
    let opened = |flood: Vec<u8>| [post(1), flood].concat();
    let closed = [post(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat();
    let window =
        [[0, 4, 0, 0, 0, 0], [0, 4, 0, 1, 0, 0]].map(|payload| one(SETTINGS, 0, &payload, 1));
    for (name, frames) in [
        ("SETTINGS", one(SETTINGS, 0, &[], 1_000)),
        ("SETTINGS that move windows", window.concat().repeat(500)),
        ("PING", one(PING, 0, b"12345678", 2_000)),
        ("PRIORITY", one(PRIORITY, 1, &[0, 0, 0, 0, 1], 4_000)),
        ("PRIORITY_UPDATE", one(PRIORITY_UPDATE, 0, b"\0\0\0\x01u=1", 4_000)),
        ("WINDOW_UPDATE", one(WINDOW_UPDATE, 0, &[0, 0, 0, 1], 8_000)),
        ("WINDOW_UPDATE of a stream", opened(one(WINDOW_UPDATE, 1, &[0, 0, 0, 1], 8_000))),
        ("an unknown type", one(0xbb, 0, b"12345678", 8_000)),
        ("empty DATA", opened(one(DATA, 1, &[], 1_000))),
        ("padded empty DATA", opened(frame(DATA, PADDED, 1, &[1, 0]).repeat(1_000))),
        ("small DATA", opened(one(DATA, 1, b"x", 60_000))),
        ("DATA of a closed stream", [closed.clone(), one(DATA, 1, b"x", 8_000)].concat()),
        ("RST_STREAM of one", [closed, one(RST_STREAM, 1, &[0; 4], 8_000)].concat()),
        (
            "CONTINUATION",
            [frame(HEADERS, 0, 1, &head(GET)), one(CONTINUATION, 1, &[], 100)].concat(),
        ),
    ] {
        ends_with(&site, name, ENHANCE_YOUR_CALM, &frames);
    }
    site.ends_unharmed("HTTP/2 frames");
}

/// CVE-2023-44487 and CVE-2025-8671: the client gives up a request, or has the server reset it, and the
/// stream no longer counts as open.
#[test]
fn streams_that_end_at_once_end_the_connection() {
    let site = Abused::start();
    let update = |stream, increment: u32| frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
    let then = |first: Vec<u8>, second: Vec<u8>| [first, second].concat();
    for (name, frames) in [
        ("RST_STREAM", streams(500, |id| then(post(id), frame(RST_STREAM, 0, id, &[0, 0, 0, 8])))),
        ("a window update of 0", streams(500, |id| then(post(id), update(id, 0)))),
        ("a window overflow", streams(500, |id| then(post(id), update(id, 0x7fff_ffff)))),
        (
            "more body than announced",
            streams(500, |id| then(post_of(id, "1"), frame(DATA, 0, id, b"two"))),
        ),
        (
            "less body than announced",
            streams(500, |id| then(post_of(id, "10"), frame(DATA, END_STREAM, id, b"two"))),
        ),
        (
            "trailers that do not end",
            streams(500, |id| {
                then(post(id), frame(HEADERS, END_HEADERS, id, &[0x00, 1, b'a', 1, b'b']))
            }),
        ),
        // Upper case is malformed (RFC 9113 8.2).
        (
            "malformed heads",
            streams(500, |id| {
                let name = [&head(GET)[..], &[0, 1, b'A', 1, b'b']].concat();
                frame(HEADERS, END_STREAM | END_HEADERS, id, &name)
            }),
        ),
        // More than are allowed at a time.
        ("refused streams", streams(1_000, post)),
    ] {
        ends_with(&site, name, ENHANCE_YOUR_CALM, &frames);
    }
    site.ends_unharmed("HTTP/2 streams");
}

#[test]
fn malformed_frames_end_the_connection() {
    let site = Abused::start();
    let then = |first: Vec<u8>, second: Vec<u8>| [first, second].concat();
    let long = frame(DATA, 0, 1, &[0; 20_000]);
    for (name, code, frames) in [
        ("padding of DATA", PROTOCOL_ERROR, then(post(1), frame(DATA, PADDED, 1, &[9, 0, 0]))),
        (
            "padding of HEADERS",
            PROTOCOL_ERROR,
            frame(HEADERS, PADDED | END_HEADERS, 1, &[200, 0x82]),
        ),
        (
            "DATA without a length of padding",
            FRAME_SIZE_ERROR,
            then(post(1), frame(DATA, PADDED, 1, &[])),
        ),
        ("a frame too long", FRAME_SIZE_ERROR, then(post(1), long)),
        ("SETTINGS of 5 bytes", FRAME_SIZE_ERROR, frame(SETTINGS, 0, 0, &[0; 5])),
        ("PING of 7 bytes", FRAME_SIZE_ERROR, frame(PING, 0, 0, &[0; 7])),
        (
            "HEADERS in a field block",
            PROTOCOL_ERROR,
            then(frame(HEADERS, 0, 1, &head(GET)), post(3)),
        ),
        ("CONTINUATION alone", PROTOCOL_ERROR, frame(CONTINUATION, END_HEADERS, 1, &head(GET))),
        ("an even stream", PROTOCOL_ERROR, post(2)),
        ("DATA on an idle stream", PROTOCOL_ERROR, frame(DATA, 0, 1, b"x")),
        ("PUSH_PROMISE", PROTOCOL_ERROR, frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])),
        ("a window of 2^31", FLOW_CONTROL_ERROR, frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0])),
        (
            "a window overflow",
            FLOW_CONTROL_ERROR,
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]),
        ),
        (
            "a field of no table",
            COMPRESSION_ERROR,
            frame(HEADERS, END_HEADERS, 1, &[0xff, 0xff, 0x7f]),
        ),
    ] {
        ends_with(&site, name, code, &frames);
    }
    site.ends_unharmed("HTTP/2 malformed frames");
}
