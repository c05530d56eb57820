//! Any bytes as the coded body of an upstream: never more comes out than is allowed, and the same in
//! pieces as in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_upstream::fuzzing::decoded;

const MOST_BYTES: u64 = 64 << 10;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (coding, piece_len, body) = input;
    let coding = [&b"gzip"[..], b"deflate", b"br", b"zstd"][usize::from(coding) % 4];
    let whole = decoded(coding, std::iter::once(body), MOST_BYTES).expect("a known coding");
    let pieces = body.chunks(usize::from(piece_len).max(1));
    let split = decoded(coding, pieces, MOST_BYTES).expect("a known coding");
    for (_, out) in [&whole, &split] {
        assert!(out.len() as u64 <= MOST_BYTES);
    }
    // brotli-decompressor takes some malformed streams when they come whole and refuses them in
    // pieces, so what is asked of it is no more than that what both take is the same.
    if coding != b"br" {
        assert_eq!(split.0, whole.0);
    }
    // What was already given of a body that turns out broken depends on where it was cut.
    if whole.0 && split.0 {
        assert_eq!(split.1, whole.1);
    }
});
