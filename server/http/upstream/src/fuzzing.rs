//! Entry points for fuzz targets, compiled only with `--cfg fuzzing`.

use crate::decode::Decoder;

/// Decodes a body in pieces to at most `max_bytes`; returns whether that succeeded, and the output.
/// `None` for an unknown coding.
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
