//! Request smuggling: byte streams that two servers in a row are known to split differently.
//!
//! Each stream hides a request for `/smuggled`, which must never be served: either the stream is
//! refused before it, or it is inside a body.

use outboard_http1::{
    BodyFraming, Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, HeadStatus, RequestHead,
};

/// A server's reading of a stream: the served paths in order, and why it closed the connection.
#[derive(Debug, PartialEq, Eq)]
struct Served {
    paths: Vec<String>,
    refused: Option<&'static str>,
}

fn serve(stream: &[u8]) -> Served {
    let mut served = Served { paths: Vec::new(), refused: None };
    let mut head = RequestHead::new();
    let mut at = 0;
    loop {
        let rest = &stream[at..];
        let head_len = match head.parse(rest, &HeadLimits::default()) {
            Ok(HeadStatus::Complete { head_len }) => head_len,
            Ok(HeadStatus::Partial) => return served,
            Err(error) => {
                served.refused = Some(error.reason());
                return served;
            }
        };
        let body_len = match body_len(head.body(), &rest[head_len..]) {
            Ok(body_len) => body_len,
            Err(reason) => {
                served.refused = reason;
                return served;
            }
        };
        served.paths.push(String::from_utf8_lossy(head.path(rest)).into_owned());
        at += head_len + body_len;
    }
}

/// The length of a complete body, or why it is refused: `None` if the stream ends first.
fn body_len(framing: BodyFraming, input: &[u8]) -> Result<usize, Option<&'static str>> {
    match framing {
        BodyFraming::None | BodyFraming::Stream => Ok(0),
        BodyFraming::Length(length) => {
            usize::try_from(length).ok().filter(|&length| length <= input.len()).ok_or(None)
        }
        BodyFraming::Chunked => {
            let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
            let mut at = 0;
            loop {
                match decoder.decode(&input[at..]).map_err(|error| Some(error.reason()))? {
                    Chunk::Data { range } => at += range.end,
                    Chunk::NeedMore => return Err(None),
                    Chunk::End { consumed } => return Ok(at + consumed),
                }
            }
        }
    }
}

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// `POST /` with `fields`, an empty chunked body, then the hidden request.
fn behind_empty_chunk(fields: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n0\r\n\r\n{SMUGGLED}")
}

#[test]
fn length_with_transfer_encoding_is_refused_in_any_disguise() {
    for (fields, reason) in [
        // The one server reads the length, the other the chunks.
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "length_with_transfer_encoding"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "length_with_transfer_encoding"),
        ("content-length: 5\r\ntransfer-encoding: CHUNKED\r\n", "length_with_transfer_encoding"),
        // One of them does not see the coding.
        ("Content-Length: 5\r\nTransfer-Encoding : chunked\r\n", "space_before_colon"),
        ("Content-Length: 5\r\nTransfer-Encoding\t: chunked\r\n", "space_before_colon"),
        ("Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n", "unknown_transfer_coding"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked, identity\r\n", "chunked_not_last"),
        (
            "Content-Length: 5\r\nTransfer-Encoding: identity, chunked\r\n",
            "unknown_transfer_coding",
        ),
        ("Content-Length: 5\r\nTransfer-Encoding: \x0bchunked\r\n", "control_in_header_value"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\x0c\r\n", "control_in_header_value"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\0\r\n", "control_in_header_value"),
        ("Content-Length: 5\r\nTransfer-Encoding: \"chunked\"\r\n", "malformed_transfer_encoding"),
        ("Content-Length: 5\r\nTransfer-Encoding: 'chunked'\r\n", "unknown_transfer_coding"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked;q=1\r\n", "malformed_transfer_encoding"),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chu\u{212a}ed\r\n",
            "malformed_transfer_encoding",
        ),
        ("Content-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n", "malformed_transfer_encoding"),
        ("Content-Length: 5\r\nX: y\r\n Transfer-Encoding: chunked\r\n", "obs_fold"),
        ("Content-Length: 5\r\nX: y\nTransfer-Encoding: chunked\r\n", "bare_lf"),
        ("Content-Length: 5\r\nX: y\rTransfer-Encoding: chunked\r\n", "bare_cr"),
        ("Content-Length: 5\r\nX\nTransfer-Encoding: chunked\r\n", "bare_lf"),
        ("Content-Length: 5\r\n\0Transfer-Encoding: chunked\r\n", "invalid_header_name"),
        ("Content-Length: 5\r\n: x\r\nTransfer-Encoding: chunked\r\n", "empty_header_name"),
        ("Content-Length: 5\r\nX\r\nTransfer-Encoding: chunked\r\n", "missing_colon"),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "duplicate_transfer_encoding",
        ),
        (
            "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
            "unknown_transfer_coding",
        ),
    ] {
        let served = serve(behind_empty_chunk(fields).as_bytes());
        assert_eq!(served, Served { paths: vec![], refused: Some(reason) }, "{fields}");
    }
}

#[test]
fn a_doubtful_length_is_refused() {
    for (fields, reason) in [
        ("Content-Length: 0\r\nContent-Length: 44\r\n", "duplicate_content_length"),
        ("Content-Length: 44\r\nContent-Length: 44\r\n", "duplicate_content_length"),
        ("Content-Length: 0, 44\r\n", "malformed_content_length"),
        ("Content-Length: +44\r\n", "malformed_content_length"),
        ("Content-Length: 4 4\r\n", "malformed_content_length"),
        ("Content-Length: 0x2c\r\n", "malformed_content_length"),
        ("Content-Length: 18446744073709551660\r\n", "malformed_content_length"),
        ("Content-Length : 44\r\n", "space_before_colon"),
        ("Content-Length: 44\x0b\r\n", "control_in_header_value"),
        ("Content-Length:\r\n 44\r\n", "malformed_content_length"),
    ] {
        let stream = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{SMUGGLED}");
        let served = serve(stream.as_bytes());
        assert_eq!(served, Served { paths: vec![], refused: Some(reason) }, "{fields}");
    }
}

#[test]
fn doubtful_chunks_are_refused() {
    for (body, reason) in [
        ("0\n\n", "chunk_bare_lf"),
        ("0\r\n\n", "invalid_trailer"),
        ("0 \r\n\r\n", "chunk_invalid_size"),
        ("0x0\r\n\r\n", "chunk_invalid_size"),
        ("-0\r\n\r\n", "chunk_invalid_size"),
        ("10000000000000000\r\n\r\n", "chunk_size_overflow"),
        // Only one server ends the extension's line here.
        ("2;a\nxx\r\n0\r\n\r\n", "chunk_bare_lf"),
        ("2;a\rxx\r\n0\r\n\r\n", "chunk_bare_cr"),
        ("2;a=\"\nxx\r\n0\r\n\r\n", "chunk_bare_lf"),
        // Data that does not end with CRLF, which some servers skip unchecked.
        ("2\r\nxxyz0\r\n\r\n", "chunk_missing_data_end"),
        ("2\r\nxx\n0\r\n\r\n", "chunk_missing_data_end"),
        ("2\r\nxx0\r\n\r\n", "chunk_missing_data_end"),
        // The hidden request as trailers.
        ("0\r\nX: y\r\n GET /smuggled HTTP/1.1\r\n\r\n", "invalid_trailer"),
        ("0\r\nContent-Length: 44\r\n\r\n", "forbidden_trailer"),
        ("0\r\n", "invalid_trailer"),
    ] {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let served = serve(format!("{head}{body}{SMUGGLED}").as_bytes());
        assert_eq!(served, Served { paths: vec![], refused: Some(reason) }, "{body}");
    }
}

#[test]
fn doubtful_request_lines_and_versions_are_refused() {
    for (stream, reason) in [
        ("GET / HTTP/1.1\nHost: a\n\n", "bare_lf"),
        ("GET /\r\n\r\n", "malformed_request_line"),
        ("GET / HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n", "malformed_version"),
        ("GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", "invalid_target_byte"),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", "whitespace_before_headers"),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "transfer_encoding_in_http10",
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "duplicate_host"),
        ("GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "invalid_absolute_form"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "unsupported_version"),
    ] {
        let served = serve(format!("{stream}{SMUGGLED}").as_bytes());
        assert_eq!(served, Served { paths: vec![], refused: Some(reason) }, "{stream}");
    }
}

#[test]
fn a_request_that_is_plainly_in_a_body_stays_there() {
    let length = SMUGGLED.len();
    for (method, framing, body) in [
        ("GET", format!("Content-Length: {length}\r\n"), SMUGGLED.to_owned()),
        ("HEAD", format!("Content-Length: {length}\r\n"), SMUGGLED.to_owned()),
        ("OPTIONS", format!("Content-Length: {length}\r\n"), SMUGGLED.to_owned()),
        (
            "POST",
            "Transfer-Encoding: chunked\r\n".to_owned(),
            format!("{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n"),
        ),
        ("POST", format!("Content-Length: {}\r\n", length + 5), format!("0\r\n\r\n{SMUGGLED}")),
        // Names that only resemble framing fields.
        (
            "POST",
            format!("Content-Length: {length}\r\nTransfer_Encoding: chunked\r\n"),
            SMUGGLED.to_owned(),
        ),
        (
            "POST",
            format!("Content-Length: {length}\r\nXTransfer-Encoding: chunked\r\n"),
            SMUGGLED.to_owned(),
        ),
    ] {
        let next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
        let stream = format!("{method} / HTTP/1.1\r\nHost: a\r\n{framing}\r\n{body}{next}");
        let served = serve(stream.as_bytes());
        let paths = vec!["/".to_owned(), "/next".to_owned()];
        assert_eq!(served, Served { paths, refused: None }, "{method} {framing}");
    }
}
