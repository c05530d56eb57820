//! Accepted and refused response heads, and the framing that follows from them (RFC 9112 4, 6.3).

use outboard_http1::{
    HeadError, HeadLimits, HeadStatus, Method, ResponseBody, ResponseParser, Version,
};

const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 100, header_bytes: 200, header_count: 4 };

fn parse(bytes: &[u8]) -> Result<ResponseParser, HeadError> {
    let mut head = ResponseParser::new();
    match head.parse(bytes, &LIMITS)? {
        HeadStatus::Complete { head_len } => assert_eq!(head_len, bytes.len()),
        HeadStatus::Partial => panic!("partial: {}", bytes.escape_ascii()),
    }
    Ok(head)
}

#[test]
fn the_status_line_is_read() {
    for (line, version, status, reason) in [
        ("HTTP/1.1 200 OK", Version::Http11, 200, "OK"),
        ("HTTP/1.0 404 Not Found", Version::Http10, 404, "Not Found"),
        ("HTTP/1.1 200 ", Version::Http11, 200, ""),
        ("HTTP/1.1 200", Version::Http11, 200, ""),
        ("HTTP/1.1 999 \t\u{e4} x ", Version::Http11, 999, "\t\u{e4} x "),
    ] {
        let bytes = format!("{line}\r\nA: b\r\n\r\n").into_bytes();
        let head = parse(&bytes).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!((head.version(), head.status()), (version, status));
        assert_eq!(head.reason(&bytes), reason.as_bytes());
        assert_eq!(head.header(&bytes, b"a"), Some(&b"b"[..]));
    }
}

#[test]
fn heads_with_two_readings_are_refused() {
    use HeadError::*;
    for (bytes, error) in [
        (&b"HTTP/1.1  200 OK\r\n\r\n"[..], MalformedStatusLine),
        (b"HTTP/1.1 20 OK\r\n\r\n", MalformedStatusLine),
        (b"HTTP/1.1 2000 OK\r\n\r\n", MalformedStatusLine),
        (b"HTTP/1.1 099 OK\r\n\r\n", MalformedStatusLine),
        (b"HTTP/1.1 200\tOK\r\n\r\n", MalformedStatusLine),
        (b"HTTP/1.1 200OK\r\n\r\n", MalformedStatusLine),
        (b"HTTP/1.1\r\n\r\n", MalformedStatusLine),
        (b"ICY 200 OK\r\n\r\n", MalformedVersion),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", MalformedVersion),
        (b"HTTP/2.0 200 OK\r\n\r\n", UnsupportedVersion),
        (b"HTTP/1.1 200 OK\n\r\n", BareLf),
        (b"HTTP/1.1 200 O\rK\r\n\r\n", BareCr),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", SpaceBeforeColon),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", ObsFold),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", MalformedContentLength),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            LengthWithTransferEncoding,
        ),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", TransferEncodingInHttp10),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", UnknownTransferCoding),
    ] {
        assert_eq!(parse(bytes).map(|_| ()), Err(error), "{}", bytes.escape_ascii());
    }
}

#[test]
fn the_body_ends_as_status_request_and_fields_say() {
    use ResponseBody::{Chunked, Length, None, UntilClose};
    for (status, fields, request, body) in [
        (200, "Content-Length: 5\r\n", Method::Get, Length(5)),
        (200, "Transfer-Encoding: chunked\r\n", Method::Get, Chunked),
        (200, "", Method::Get, UntilClose),
        (500, "", Method::Post, UntilClose),
        (200, "Content-Length: 5\r\n", Method::Head, None),
        (200, "Transfer-Encoding: chunked\r\n", Method::Head, None),
        (200, "", Method::Head, None),
        (100, "", Method::Post, None),
        (103, "Content-Length: 5\r\n", Method::Get, None),
        (101, "", Method::Get, None),
        (204, "", Method::Delete, None),
        (204, "Content-Length: 5\r\n", Method::Get, None),
        (304, "Content-Length: 5\r\n", Method::Get, None),
        (200, "Content-Length: 5\r\n", Method::Connect, None),
        (403, "Content-Length: 5\r\n", Method::Connect, Length(5)),
    ] {
        let bytes = format!("HTTP/1.1 {status} \r\n{fields}\r\n").into_bytes();
        assert_eq!(parse(&bytes).unwrap().body(request), body, "{status} {fields} {request:?}");
    }
}

#[test]
fn the_connection_lives_on_only_after_a_delimited_body() {
    for (head, keep_alive) in [
        ("HTTP/1.1 200 \r\nContent-Length: 5\r\n", true),
        ("HTTP/1.1 200 \r\nContent-Length: 5\r\nConnection: close\r\n", false),
        ("HTTP/1.1 200 \r\n", false),
        ("HTTP/1.1 204 \r\n", true),
        ("HTTP/1.0 200 \r\nContent-Length: 5\r\n", false),
        ("HTTP/1.0 200 \r\nContent-Length: 5\r\nConnection: keep-alive\r\n", true),
    ] {
        let bytes = format!("{head}\r\n").into_bytes();
        assert_eq!(parse(&bytes).unwrap().keep_alive(Method::Get), keep_alive, "{head}");
    }
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n\
                  HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut head = ResponseParser::new();
    let mut at = 0;
    for (status, is_interim) in [(100, true), (103, true), (200, false)] {
        let Ok(HeadStatus::Complete { head_len }) = head.parse(&bytes[at..], &LIMITS) else {
            panic!("no head for {status}");
        };
        assert_eq!((head.status(), head.is_interim()), (status, is_interim));
        at += head_len;
    }
    assert_eq!(at, bytes.len());
    assert!(!parse(b"HTTP/1.1 101 \r\n\r\n").unwrap().is_interim());
}

#[test]
fn limits_hold() {
    let line = |bytes: usize| format!("HTTP/1.1 200 {}\r\n\r\n", "a".repeat(bytes - 13));
    assert!(parse(line(100).as_bytes()).is_ok());
    assert!(parse(line(101).as_bytes()).is_err());
    let fields = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert!(parse(fields(4).as_bytes()).is_ok());
    assert_eq!(parse(fields(5).as_bytes()).err(), Some(HeadError::TooManyHeaders));
}
