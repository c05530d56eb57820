//! Properties of every input: splits do not change the result, no input panics, encoder and decoder
//! agree, and a second parser reads accepted heads in the same way.

use outboard_http1::{
    Chunk, ChunkError, ChunkLimits, ChunkedDecoder, HeadError, HeadLimits, HeadStatus, PathError,
    RequestHead, ResponseParser, normalize_path, write_chunk, write_header, write_last_chunk,
};
use proptest::prelude::*;

const HEAD_LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 60, header_bytes: 160, header_count: 6 };
const CHUNK_LIMITS: ChunkLimits =
    ChunkLimits { extension_bytes: 12, trailer_bytes: 40, trailer_count: 2 };

/// Bytes that resemble HTTP often enough to reach all parts of the parsers.
fn http_like(pieces: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..3),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn broken_request() -> impl Strategy<Value = Vec<u8>> {
    let tail = http_like(&[
        b"GET",
        b" ",
        b"/",
        b"/a?b",
        b"HTTP/1.1",
        b"HTTP/1.0",
        b"\r\n",
        b"\r",
        b"\n",
        b"Host: a\r\n",
        b"Host",
        b":",
        b": ",
        b"\t",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
        b"abc",
        b"\r\n\r\n",
    ]);
    const STARTS: &[&[u8]] = &[
        b"",
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"\r\n",
        b"POST ",
        b"POST /x HTTP/1.0\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n",
        b"GET http://b/c HTTP/1.1\r\n",
    ];
    let start = prop::sample::select(STARTS);
    (start, tail).prop_map(|(start, tail)| [start, &tail].concat())
}

/// A valid head, possibly with one overwritten byte, and possibly with bytes behind it.
fn almost_valid_request() -> impl Strategy<Value = Vec<u8>> {
    const LINES: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"POST /a?b HTTP/1.0\r\n",
        b"\r\nPUT http://b:8/c HTTP/1.1\r\nhost:\r\n",
        b"CONNECT [::1]:1 HTTP/1.1\r\nHOST:\t[::1]\r\n",
    ];
    const FRAMING: &[&[u8]] = &[b"", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"];
    let field = ("[!#-'*+.^-z|~-]{1,8}", "[ \t]{0,2}[ -~\t\u{80}-\u{ff}]{0,12}")
        .prop_map(|(name, value)| format!("{name}:{value}\r\n").into_bytes());
    let damage = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
    (
        prop::sample::select(LINES),
        prop::collection::vec(field, 0..5).prop_map(|fields| fields.concat()),
        prop::sample::select(FRAMING),
        damage,
    )
        .prop_map(|(line, fields, framing, damage)| {
            let mut bytes = [line, &fields, framing, b"\r\nabc"].concat();
            if let Some((at, byte)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        })
}

fn request_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![broken_request(), almost_valid_request()]
}

fn response_bytes() -> impl Strategy<Value = Vec<u8>> {
    http_like(&[
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1",
        b" ",
        b"204",
        b"\r\n",
        b"\r",
        b"\n",
        b"A: b\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b":",
        b"abc",
    ])
}

fn chunked_bytes() -> impl Strategy<Value = Vec<u8>> {
    http_like(&[
        b"1\r\na\r\n",
        b"3",
        b"a",
        b"0\r\n",
        b"0",
        b";",
        b";x=y",
        b"\r\n",
        b"\r",
        b"\n",
        b"abc",
        b"A: b\r\n",
        b"Host: a\r\n",
        b"fffffffffffffff",
        b" ",
    ])
}

/// The sizes of the pieces of an input, used in turn.
fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1..9usize, 1..6)
}

/// Ends of the pieces of an input of `len` bytes.
fn ends(len: usize, pieces: &[usize]) -> Vec<usize> {
    let mut ends: Vec<usize> = pieces
        .iter()
        .cycle()
        .scan(0, |end, piece| {
            *end += piece;
            Some(*end)
        })
        .take_while(|end| *end < len)
        .collect();
    ends.push(len);
    ends
}

/// Parses longer and longer prefixes until one has a result.
fn first_answer(
    ends: &[usize],
    mut parse: impl FnMut(usize) -> Result<HeadStatus, HeadError>,
) -> Result<HeadStatus, HeadError> {
    let mut result = Ok(HeadStatus::Partial);
    for &end in ends {
        result = parse(end);
        if result != Ok(HeadStatus::Partial) {
            break;
        }
    }
    result
}

type Decoded = Result<(Vec<u8>, Option<usize>, Vec<u8>), ChunkError>;

/// The body, where the message ends if it does, and the trailers.
fn decode(input: &[u8], ends: &[usize], limits: ChunkLimits) -> Decoded {
    let mut decoder = ChunkedDecoder::new(limits);
    let mut body = Vec::new();
    let mut at = 0;
    for &end in ends {
        loop {
            match decoder.decode(&input[at..end])? {
                Chunk::Data { range } => {
                    body.extend_from_slice(&input[at + range.start..at + range.end]);
                    at += range.end;
                }
                Chunk::NeedMore => {
                    at = end;
                    break;
                }
                Chunk::End { consumed } => {
                    let mut trailers = Vec::new();
                    for (name, value) in decoder.trailers() {
                        write_header(&mut trailers, name, value).unwrap();
                    }
                    return Ok((body, Some(at + consumed), trailers));
                }
            }
        }
    }
    Ok((body, None, Vec::new()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_request_head_means_the_same_however_it_is_split(
        mut bytes in request_bytes(), pieces in pieces(),
    ) {
        // Only complete lines are checked, so the last one is completed.
        bytes.push(b'\n');
        let mut whole = RequestHead::new();
        let expected = whole.parse(&bytes, &HEAD_LIMITS);
        let mut split = RequestHead::new();
        let answer = first_answer(&ends(bytes.len(), &pieces), |end| {
            split.parse(&bytes[..end], &HEAD_LIMITS)
        });
        prop_assert_eq!(answer, expected);
        if let Ok(HeadStatus::Complete { .. }) = expected {
            prop_assert_eq!(split.target(&bytes), whole.target(&bytes));
            prop_assert_eq!(split.host(&bytes), whole.host(&bytes));
            prop_assert_eq!(split.body(), whole.body());
            prop_assert_eq!(split.keep_alive(), whole.keep_alive());
            prop_assert!(split.headers(&bytes).eq(whole.headers(&bytes)));
        }
    }

    #[test]
    fn a_response_head_means_the_same_however_it_is_split(
        mut bytes in response_bytes(), pieces in pieces(),
    ) {
        bytes.push(b'\n');
        let mut whole = ResponseParser::new();
        let expected = whole.parse(&bytes, &HEAD_LIMITS);
        let mut split = ResponseParser::new();
        let answer = first_answer(&ends(bytes.len(), &pieces), |end| {
            split.parse(&bytes[..end], &HEAD_LIMITS)
        });
        prop_assert_eq!(answer, expected);
        if let Ok(HeadStatus::Complete { .. }) = expected {
            prop_assert_eq!(split.status(), whole.status());
            prop_assert!(split.headers(&bytes).eq(whole.headers(&bytes)));
        }
    }

    #[test]
    fn a_chunked_body_means_the_same_however_it_is_split(
        bytes in chunked_bytes(), pieces in pieces(),
    ) {
        let whole = decode(&bytes, &[bytes.len()], CHUNK_LIMITS);
        let split = decode(&bytes, &ends(bytes.len(), &pieces), CHUNK_LIMITS);
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let limits = HeadLimits::default();
        let _ = RequestHead::new().parse(&bytes, &limits);
        let _ = ResponseParser::new().parse(&bytes, &limits);
        let _ = decode(&bytes, &[bytes.len()], ChunkLimits::default());
        let _ = normalize_path(&bytes, &mut Vec::new());
    }

    #[test]
    fn what_is_accepted_reads_the_same_in_another_parser(bytes in request_bytes()) {
        let mut head = RequestHead::new();
        if let Ok(HeadStatus::Complete { head_len }) = head.parse(&bytes, &HEAD_LIMITS) {
            let mut fields = [httparse::EMPTY_HEADER; 6];
            let mut other = httparse::Request::new(&mut fields);
            let parsed = other.parse(&bytes);
            // Targets are bytes here, and text there.
            prop_assume!(str::from_utf8(head.target(&bytes)).is_ok());
            // A later minor version is taken as the highest one known (RFC 9110 2.5); not there.
            prop_assume!(parsed != Err(httparse::Error::Version));
            prop_assert_eq!(parsed, Ok(httparse::Status::Complete(head_len)));
            prop_assert_eq!(other.method.map(str::as_bytes), Some(head.method(&bytes)));
            prop_assert_eq!(other.path.map(str::as_bytes), Some(head.target(&bytes)));
            let others = other.headers.iter().map(|field| (field.name.as_bytes(), field.value));
            prop_assert!(head.headers(&bytes).eq(others));
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same(
        data in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        trailer in prop::option::of("[!#-'*+.^-z|~-]{1,6}"),
        pieces in pieces(),
    ) {
        let mut encoded = Vec::new();
        for piece in &data {
            write_chunk(&mut encoded, piece);
        }
        let name = trailer.as_ref().map(|name| format!("x-{name}"));
        let trailers = name.iter().map(|name| (name.as_bytes(), &b"v"[..]));
        prop_assert_eq!(write_last_chunk(&mut encoded, trailers), Ok(()));

        let expected_trailers = name.map_or(Vec::new(), |name| format!("{name}: v\r\n").into_bytes());
        let expected = Ok((data.concat(), Some(encoded.len()), expected_trailers));
        prop_assert_eq!(decode(&encoded, &ends(encoded.len(), &pieces), CHUNK_LIMITS), expected);
    }

    #[test]
    fn a_normalized_path_stays_below_its_root(
        raw in http_like(&[b"/", b"//", b".", b"..", b"/..", b"/.", b"a", b"%2e", b"%2F", b"%25", b"%00", b"%"]),
    ) {
        let raw = [b"/", &raw[..]].concat();
        let mut path = Vec::new();
        match normalize_path(&raw, &mut path) {
            Err(error) => prop_assert_ne!(error, PathError::NotAbsolute),
            Ok(()) => {
                prop_assert_eq!(path.first(), Some(&b'/'));
                prop_assert!(!path.contains(&0));
                let segments: Vec<&[u8]> = path[1..].split(|&byte| byte == b'/').collect();
                let (_, inner) = segments.split_last().unwrap();
                prop_assert!(inner.iter().all(|segment| !segment.is_empty()));
                prop_assert!(!segments.iter().any(|segment| matches!(*segment, b"." | b"..")));
            }
        }
    }
}

/// A head in one-byte reads costs about as many byte visits as one in a single read. If each read
/// started over, 200 KiB would take 20 billion visits, and the test would not end.
#[test]
fn a_head_in_single_bytes_is_not_read_again_and_again() {
    let limits = HeadLimits { header_bytes: 1 << 20, ..HeadLimits::default() };
    let long_value = "x".repeat(200 * 1024);
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nLong: {long_value}\r\n\r\n").into_bytes();
    let mut head = RequestHead::new();
    for end in 1..bytes.len() {
        assert_eq!(head.parse(&bytes[..end], &limits), Ok(HeadStatus::Partial));
    }
    let complete = HeadStatus::Complete { head_len: bytes.len() };
    assert_eq!(head.parse(&bytes, &limits), Ok(complete));
}
