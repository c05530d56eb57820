//! Any bytes as a chunked body: no panic, the same body in pieces as in one, and what was decoded
//! survives being encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http1::{
    Chunk, ChunkError, ChunkLimits, ChunkedDecoder, write_chunk, write_last_chunk,
};

const LIMITS: ChunkLimits =
    ChunkLimits { extension_bytes: 40, trailer_bytes: 200, trailer_count: 6 };

/// A body, and where its message ends if it does.
type Decoded = Result<(Vec<u8>, Option<usize>), ChunkError>;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece_len, bytes) = input;
    let mut decoder = ChunkedDecoder::new(LIMITS);
    let whole = decode(&mut decoder, bytes, usize::MAX);
    let split = decode(&mut ChunkedDecoder::new(LIMITS), bytes, usize::from(piece_len).max(1));
    assert_eq!(split, whole);

    if let Ok((body, Some(_))) = whole {
        assert_eq!(decoder.body_bytes(), body.len() as u64);
        let mut encoded = Vec::new();
        write_chunk(&mut encoded, &body);
        write_last_chunk(&mut encoded, decoder.trailers()).expect("trailers were validated");
        // Wider limits: the encoder writes a space after each colon.
        let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
        let again = decode(&mut decoder, &encoded, usize::MAX);
        assert_eq!(again, Ok((body, Some(encoded.len()))));
    }
});

fn decode(decoder: &mut ChunkedDecoder, bytes: &[u8], piece_len: usize) -> Decoded {
    let mut body = Vec::new();
    let mut consumed = 0;
    for piece in bytes.chunks(piece_len) {
        let mut at = 0;
        loop {
            match decoder.decode(&piece[at..])? {
                Chunk::NeedMore => break,
                Chunk::Data { range } => {
                    body.extend_from_slice(&piece[at + range.start..at + range.end]);
                    at += range.end;
                }
                Chunk::End { consumed: last } => return Ok((body, Some(consumed + at + last))),
            }
        }
        consumed += piece.len();
    }
    Ok((body, None))
}
