//! Messages of raw connections: in order, within the limit, and the same however the bytes arrive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_gateway::fuzzing::framing::{Decoder, Framing, LengthField, LengthKind, Malformed};

const MAX_BYTES: usize = 512;

fn messages(framing: &Framing, stream: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, Malformed> {
    let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
    for bytes in stream.chunks(piece) {
        decoder.push(bytes);
        while let Some(message) = decoder.next(framing, MAX_BYTES)? {
            assert!(!message.is_empty() && message.len() <= MAX_BYTES);
            messages.push(message);
        }
    }
    Ok(messages)
}

fuzz_target!(|input: (u8, u8, u8, Vec<u8>, Vec<u8>)| {
    let (which, offset, piece, mark, stream) = input;
    let framing = match "cCsSnvlLNVqQJP".chars().nth(usize::from(which)).and_then(LengthKind::of) {
        Some(kind) => {
            let (offset, body_offset) = (usize::from(offset & 15), usize::from(offset >> 4));
            Framing::Length(LengthField { kind, offset, body_offset })
        }
        None if !mark.is_empty() => Framing::Splits(mark),
        None => return,
    };
    let whole = messages(&framing, &stream, usize::MAX);
    let pieces = messages(&framing, &stream, usize::from(piece).max(1));
    if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
        assert_eq!(whole, pieces);
        assert!(stream.starts_with(&whole.concat()));
    }
});
