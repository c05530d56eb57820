//! What fuzz targets reach of the parsers here. Compiled for them alone, with `--cfg fuzzing`.

use crate::decode::Decoder;

/// Takes a content coding off a body that comes in pieces, of at most `max_bytes` without it; whether
/// that went well, and what came of it. `None` for a coding that is unknown.
pub fn decoded<'b>(
    coding: &[u8],
    pieces: impl Iterator<Item = &'b [u8]>,
    max_bytes: u64,
) -> Option<(bool, Vec<u8>)> {
    let mut decoder = Decoder::of(coding, max_bytes)?;
    let mut out = Vec::new();
    for piece in pieces {
        if decoder.decode(piece, &mut out).is_err() {
            return Some((false, out));
        }
    }
    Some((decoder.finish(&mut out).is_ok(), out))
}
