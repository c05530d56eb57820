//! The chunked transfer coding of outgoing bodies (RFC 9112 7.1).
//!
//! Called by writers of bodies of unknown length. Invariant: only [`write_last_chunk`] and
//! [`LAST_CHUNK`] end a body; an empty piece of data writes nothing.

use crate::head_writer::{InvalidHeader, write_header};

/// The bytes after the data of a chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The end of a body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes the size line of a chunk of `len` bytes; the data and [`CHUNK_END`] follow.
///
/// For data that is not copied. `len` is not 0: that would end the body.
pub fn write_chunk_head(out: &mut Vec<u8>, len: usize) {
    debug_assert_ne!(len, 0, "an empty chunk ends the body");
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut line = [0; 18];
    line[16..].copy_from_slice(b"\r\n");
    let mut start = 16;
    let mut left = len as u64;
    loop {
        start -= 1;
        line[start] = HEX[(left & 0xf) as usize];
        left >>= 4;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&line[start..]);
}

/// Writes `data` as one chunk, or nothing if it is empty.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    write_chunk_head(out, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(CHUNK_END);
}

/// Ends a body with `trailers`. If one is invalid, nothing is written.
pub fn write_last_chunk<'t>(
    out: &mut Vec<u8>,
    trailers: impl IntoIterator<Item = (&'t [u8], &'t [u8])>,
) -> Result<(), InvalidHeader> {
    let start = out.len();
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        if let Err(error) = write_header(out, name, value) {
            out.truncate(start);
            return Err(error);
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_carry_their_length_in_hexadecimal() {
        let mut out = Vec::new();
        write_chunk(&mut out, b"abc");
        write_chunk(&mut out, b"");
        write_chunk_head(&mut out, 0x1f0);
        write_chunk_head(&mut out, usize::MAX);
        assert_eq!(out, b"3\r\nabc\r\n1f0\r\nffffffffffffffff\r\n");
    }

    #[test]
    fn the_last_chunk_carries_trailers_or_nothing_is_written() {
        let mut out = Vec::new();
        assert_eq!(write_last_chunk(&mut out, []), Ok(()));
        assert_eq!(out, LAST_CHUNK);
        out.clear();
        let trailers = [(&b"A"[..], &b"b"[..]), (b"C", b"d")];
        assert_eq!(write_last_chunk(&mut out, trailers), Ok(()));
        assert_eq!(out, b"0\r\nA: b\r\nC: d\r\n\r\n");
        let split = [(&b"A"[..], &b"b"[..]), (b"C", b"d\r\n")];
        assert_eq!(write_last_chunk(&mut out, split), Err(InvalidHeader::Value));
        assert_eq!(out, b"0\r\nA: b\r\nC: d\r\n\r\n");
    }
}
