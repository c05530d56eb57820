use super::*;
use crate::plan::Request;
use crate::random::Random;
use crate::target::Target;
use crate::template::{Source, Template};

/// The response to these bytes, received in pieces of `size`.
fn read(bytes: &[u8], size: usize) -> Result<(bool, Response), Malformed> {
    let mut reader = Reader::new();
    let mut response = Response { wants_body: true, wants_fields: true, ..Response::default() };
    reader.begin("GET");
    let mut whole = false;
    for piece in bytes.chunks(size) {
        if whole {
            return Err(Malformed);
        }
        whole = reader.feed(piece, &mut response)?;
    }
    Ok((whole || reader.end(), response))
}

const RESPONSES: [&[u8]; 5] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=b; Path=/\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
];

#[test]
fn cutting_a_response_changes_nothing() {
    for bytes in RESPONSES {
        for size in 1..=bytes.len() {
            let (whole, response) = read(bytes, size).expect("it is well formed");
            assert!(whole, "{size}");
            assert_eq!((response.status, response.body_bytes), (200, 5), "{size}");
            assert_eq!(response.body, b"hello");
        }
    }
}

#[test]
fn cookies_and_persistence_come_from_the_head() {
    let (_, response) = read(RESPONSES[0], 7).expect("it is well formed");
    assert_eq!(response.cookies, ["a=b"]);
    assert!(response.keep_alive);
    for until_close in [RESPONSES[2], RESPONSES[4]] {
        assert!(!read(until_close, 100).expect("it is well formed").1.keep_alive);
    }
}

#[test]
fn bytes_after_the_response_are_malformed() {
    let mut bytes = RESPONSES[0].to_vec();
    bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    for size in [1, 70, 100, bytes.len()] {
        assert!(read(&bytes, size).is_err(), "{size}");
    }
    assert!(read(b"<html>", 6).is_err());
}

#[test]
fn an_response_to_head_has_no_body() {
    let mut reader = Reader::new();
    let mut response = Response::default();
    reader.begin("HEAD");
    let whole = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", &mut response);
    assert_eq!(whole, Ok(true));
    assert_eq!(response.body_bytes, 0);
}

#[test]
fn a_request_names_host_fields_and_length() {
    let target = Target::parse("http://127.0.0.1:1/").expect("a URL");
    let request = Request {
        method: "POST".to_owned(),
        path: Template::literal("/x"),
        headers: vec![("X-A".to_owned(), Template::literal("b"))],
        body: Template::literal("hello"),
    };
    let mut message = Message::new(&request, &target);
    let mut random = Random::new(0);
    let mut source =
        Source { seq: 0, keys: &mut crate::keys::Keys::of(0), random: &mut random, values: &[] };
    message.render(&request, &mut source, &[]);
    let mut out = Vec::new();
    write(&message, false, &mut out);
    let expected = "POST /x HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-A: b\r\nConnection: close\r\n\
                    Content-Length: 5\r\n\r\nhello";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}
