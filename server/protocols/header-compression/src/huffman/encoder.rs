//! Encodes strings by the Huffman code.
//!
//! Called by `string`. Invariant: the output has the length that [`encoded_len`] returns.

use super::code::{CODES, Code, LOWERCASE_CODES};

fn codes<const LOWERCASE: bool>() -> &'static [Code; 256] {
    if LOWERCASE { &LOWERCASE_CODES } else { &CODES }
}

/// The number of bytes that [`encode`] appends.
pub fn encoded_len(bytes: &[u8]) -> usize {
    encoded_len_as::<false>(bytes)
}

/// Appends the Huffman code of `bytes` to `out`, padded to a whole byte.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    encode_as::<false>(bytes, out);
}

/// [`encoded_len`] of the bytes as they are or in lower case.
pub(crate) fn encoded_len_as<const LOWERCASE: bool>(bytes: &[u8]) -> usize {
    let codes = codes::<LOWERCASE>();
    let bits: usize = bytes.iter().map(|&byte| usize::from(codes[usize::from(byte)].bits)).sum();
    bits.div_ceil(8)
}

/// [`encode`] of the bytes as they are or in lower case.
pub(crate) fn encode_as<const LOWERCASE: bool>(bytes: &[u8], out: &mut Vec<u8>) {
    let codes = codes::<LOWERCASE>();
    // The lowest `count` bits of `bits` are not written yet: fewer than 32, and a code has up to 30.
    let (mut bits, mut count) = (0u64, 0u8);
    for &byte in bytes {
        let code = codes[usize::from(byte)];
        bits = bits << code.bits | u64::from(code.code);
        count += code.bits;
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    let padding = (8 - count % 8) % 8;
    bits = bits << padding | ((1 << padding) - 1);
    count += padding;
    let last = (bits << ((64 - count) % 64)).to_be_bytes();
    out.extend_from_slice(&last[..usize::from(count / 8)]);
}
