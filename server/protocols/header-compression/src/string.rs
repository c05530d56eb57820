//! String literals (RFC 7541 5.2, RFC 9204 4.1.2).
//!
//! Called by the decoders and encoders. Invariant: a string that is read lies within the input.

use crate::error::DecodeError;
use crate::{huffman, integer};

/// A string as it was sent.
#[derive(Clone, Copy)]
pub(crate) struct StringLiteral<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

impl<'a> StringLiteral<'a> {
    /// Reads the string whose length has a prefix of `prefix_bits`; the bit above is the flag H.
    #[inline]
    pub(crate) fn read(input: &mut &'a [u8], prefix_bits: u8) -> Result<Self, DecodeError> {
        let first = *input.first().ok_or(DecodeError::Truncated)?;
        let is_huffman = first >> prefix_bits & 1 == 1;
        let len = usize::try_from(integer::read(input, prefix_bits)?);
        let len = len.map_err(|_| DecodeError::IntegerOverflow)?;
        let (bytes, rest) = input.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        *input = rest;
        Ok(Self { bytes, is_huffman })
    }

    /// The characters, which are decoded into `scratch` if necessary.
    #[inline]
    pub(crate) fn decode<'s>(self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], DecodeError>
    where
        'a: 's,
    {
        if !self.is_huffman {
            return Ok(self.bytes);
        }
        scratch.clear();
        huffman::decode(self.bytes, scratch).map_err(|_| DecodeError::InvalidHuffmanCode)?;
        Ok(scratch)
    }
}

/// Writes a string behind `flags`, by the Huffman code if that is shorter.
#[inline]
pub(crate) fn write<const LOWERCASE: bool>(
    out: &mut Vec<u8>,
    flags: u8,
    prefix_bits: u8,
    bytes: &[u8],
) {
    let huffman_len = huffman::encoded_len_as::<LOWERCASE>(bytes);
    if huffman_len < bytes.len() {
        integer::write(out, flags | 1 << prefix_bits, prefix_bits, huffman_len as u64);
        out.reserve(huffman_len);
        huffman::encode_as::<LOWERCASE>(bytes, out);
        return;
    }
    integer::write(out, flags, prefix_bits, bytes.len() as u64);
    let start = out.len();
    out.extend_from_slice(bytes);
    if LOWERCASE {
        out[start..].make_ascii_lowercase();
    }
}
