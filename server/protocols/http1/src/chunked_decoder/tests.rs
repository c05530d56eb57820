//! RFC 9112 7.1, rule by rule.

use super::*;

const LIMITS: ChunkLimits =
    ChunkLimits { extension_bytes: 20, trailer_bytes: 60, trailer_count: 3 };

struct Decoded {
    body: Vec<u8>,
    consumed: usize,
    is_end: bool,
}

fn decode_with(decoder: &mut ChunkedDecoder, input: &[u8]) -> Result<Decoded, ChunkError> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        match decoder.decode(&input[at..])? {
            Chunk::Data { range } => {
                body.extend_from_slice(&input[at + range.start..at + range.end]);
                at += range.end;
            }
            Chunk::End { consumed } => {
                return Ok(Decoded { body, consumed: at + consumed, is_end: true });
            }
            Chunk::NeedMore => return Ok(Decoded { body, consumed: input.len(), is_end: false }),
        }
    }
}

fn decode(input: &[u8]) -> Result<Decoded, ChunkError> {
    decode_with(&mut ChunkedDecoder::new(LIMITS), input)
}

#[test]
fn chunks_are_joined_and_the_next_message_is_left_alone() {
    for (input, body) in [
        (&b"0\r\n\r\n"[..], &b""[..]),
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"1\r\na\r\n2\r\nbc\r\n00\r\n\r\n", b"abc"),
        (b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"000000000000000a\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n\r\n\r\n\r\n"),
        (b"3;a=b;c=\"d\xff\t\"\r\nabc\r\n0;x\r\n\r\n", b"abc"),
        (b"3; a = \"\\\";\" ; b\r\nabc\r\n0\r\n\r\n", b"abc"),
    ] {
        let mut pipelined = input.to_vec();
        pipelined.extend_from_slice(b"GET / HTTP/1.1\r\n");
        let decoded = decode(&pipelined).unwrap();
        assert!(decoded.is_end);
        assert_eq!(decoded.body, body, "{}", input.escape_ascii());
        assert_eq!(decoded.consumed, input.len());
    }
}

#[test]
fn framing_with_two_readings_is_refused() {
    use ChunkError::*;
    for (input, error) in [
        (&b"\r\n"[..], InvalidSize),
        (b";a\r\n", InvalidSize),
        (b" 3\r\nabc", InvalidSize),
        (b"3 \r\nabc", InvalidSize),
        (b"3 ;a\r\nabc", InvalidSize),
        (b"0x3\r\nabc", InvalidSize),
        (b"+3\r\nabc", InvalidSize),
        (b"-1\r\n", InvalidSize),
        (b"3_\r\nabc", InvalidSize),
        (b"g\r\n", InvalidSize),
        (b"3,\r\nabc", InvalidSize),
        (b"\xef\xbc\x93\r\n", InvalidSize),
        (b"00000000000000003\r\nabc", SizeOverflow),
        (b"10000000000000000\r\n", SizeOverflow),
        (b"8000000000000000\r\n", SizeOverflow),
        (b"ffffffffffffffff\r\n", SizeOverflow),
        (b"1\r\na\r\n7fffffffffffffff\r\n", SizeOverflow),
        (b"3\nabc", BareLf),
        (b"\n", BareLf),
        (b"3;a\nabc", BareLf),
        (b"3\rabc", BareCr),
        (b"3;a\rabc", BareCr),
        (b"3\r\r\nabc", BareCr),
        (b"3;a\0b\r\n", InvalidExtension),
        (b"3;a\x7f\r\n", InvalidExtension),
        (b"3;\r\nabc", InvalidExtension),
        (b"3; \r\nabc", InvalidExtension),
        (b"3;;a\r\nabc", InvalidExtension),
        (b"3;a;\r\nabc", InvalidExtension),
        (b"3;=b\r\nabc", InvalidExtension),
        (b"3;a=\r\nabc", InvalidExtension),
        (b"3;a=b=c\r\nabc", InvalidExtension),
        (b"3;a b\r\nabc", InvalidExtension),
        (b"3;a=\"b\r\nabc", InvalidExtension),
        (b"3;a=\"b\\\"\r\nabc", InvalidExtension),
        (b"3;a=\"b\"c\r\nabc", InvalidExtension),
        (b"3;a=b\"\r\nabc", InvalidExtension),
        (b"3;a\"b\"\r\nabc", InvalidExtension),
        (b"3;a=\"\0\"\r\nabc", InvalidExtension),
        (b"3\r\nabc\n", MissingDataEnd),
        (b"3\r\nabc\rX", MissingDataEnd),
        (b"3\r\nabcd\r\n", MissingDataEnd),
        (b"3\r\nabc0\r\n\r\n", MissingDataEnd),
        (b"3\r\nabc\r\r\n", MissingDataEnd),
    ] {
        assert_eq!(decode(input).err(), Some(error), "{}", input.escape_ascii());
    }
}

#[test]
fn extensions_are_limited_per_chunk() {
    assert!(decode(b"1;aaaaaaaaaaaaaaaaaaa\r\na\r\n0\r\n\r\n").unwrap().is_end);
    let too_long = decode(b"1;aaaaaaaaaaaaaaaaaaaa\r\na\r\n0\r\n\r\n");
    assert_eq!(too_long.err(), Some(ChunkError::ExtensionTooLong));
    let endless = decode(b"1;aaaaaaaaaaaaaaaaaaaa");
    assert_eq!(endless.err(), Some(ChunkError::ExtensionTooLong));
}

#[test]
fn extensions_may_not_outweigh_the_body_without_bound() {
    let limits = ChunkLimits { extension_bytes: 1024, ..LIMITS };
    let signature = format!(";chunk-signature={}", "0".repeat(64));
    let feed = |chunk: &[u8], times: usize| {
        let mut decoder = ChunkedDecoder::new(limits);
        (0..times).try_for_each(|_| decode_with(&mut decoder, chunk).map(drop))
    };
    let tiny = format!("1{signature}\r\na\r\n");
    assert_eq!(feed(tiny.as_bytes(), 10_000), Err(ChunkError::ExtensionTooLong));
    let large = format!("1000{signature}\r\n{}\r\n", "a".repeat(4096));
    assert_eq!(feed(large.as_bytes(), 10_000), Ok(()));
}

#[test]
fn trailers_are_collected() {
    let mut decoder = ChunkedDecoder::new(LIMITS);
    let decoded = decode_with(&mut decoder, b"0\r\nA: b\r\nDigest:\tx y \r\n\r\nnext").unwrap();
    assert!(decoded.is_end && decoder.is_end());
    assert_eq!(decoded.consumed, b"0\r\nA: b\r\nDigest:\tx y \r\n\r\n".len());
    let trailers: Vec<_> = decoder.trailers().collect();
    assert_eq!(trailers, [(&b"A"[..], &b"b"[..]), (b"Digest", b"x y")]);

    decoder.reset();
    assert!(decode_with(&mut decoder, b"0\r\n\r\n").unwrap().is_end);
    assert_eq!(decoder.trailers().count(), 0);
}

#[test]
fn trailers_keep_the_rules_of_field_lines() {
    use ChunkError::*;
    use HeadError::{
        BareCr, BareLf, ControlInHeaderValue, MissingColon, ObsFold, SpaceBeforeColon,
    };
    for (trailers, error) in [
        (&b"A : b\r\n\r\n"[..], InvalidTrailer(SpaceBeforeColon)),
        (b"A: b\r\n c\r\n\r\n", InvalidTrailer(ObsFold)),
        (b"A: b\n\r\n", InvalidTrailer(BareLf)),
        (b"A: b\rC: d\r\n\r\n", InvalidTrailer(BareCr)),
        (b"A: \0\r\n\r\n", InvalidTrailer(ControlInHeaderValue)),
        (b"GET / HTTP/1.1\r\n\r\n", InvalidTrailer(SpaceBeforeColon)),
        (b"A\r\n\r\n", InvalidTrailer(MissingColon)),
        (b"\n", InvalidTrailer(BareLf)),
        (b"Content-Length: 1\r\n\r\n", ForbiddenTrailer),
        (b"transfer-encoding: chunked\r\n\r\n", ForbiddenTrailer),
        (b"Host: a\r\n\r\n", ForbiddenTrailer),
        (b"Connection: close\r\n\r\n", ForbiddenTrailer),
        (b"Trailer: a\r\n\r\n", ForbiddenTrailer),
        (b"A: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", TrailersTooLong),
        (&[b'a'; 61], TrailersTooLong),
    ] {
        let input = [&b"0\r\n"[..], trailers].concat();
        assert_eq!(decode(&input).err(), Some(error), "{}", trailers.escape_ascii());
    }
}

#[test]
fn a_body_that_is_not_over_asks_for_more() {
    let whole = b"3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n";
    for end in 0..whole.len() {
        let decoded = decode(&whole[..end]).unwrap();
        assert!(!decoded.is_end, "{}", whole[..end].escape_ascii());
    }
    assert!(decode(whole).unwrap().is_end);
}

#[test]
fn the_end_is_reported_again_without_taking_more() {
    let mut decoder = ChunkedDecoder::new(LIMITS);
    assert_eq!(decoder.decode(b"0\r\n\r\n"), Ok(Chunk::End { consumed: 5 }));
    assert_eq!(decoder.decode(b"3\r\n"), Ok(Chunk::End { consumed: 0 }));
}

#[test]
fn body_bytes_are_known_from_the_chunk_heads() {
    let mut decoder = ChunkedDecoder::new(LIMITS);
    assert_eq!(decoder.decode(b"ff\r\n"), Ok(Chunk::NeedMore));
    assert_eq!(decoder.body_bytes(), 255);
}
