//! Decodes the Huffman code, two symbols at a time where they are short.
//!
//! Called by `string`. Invariants: the output is at most 8/5 of the input (the shortest code has five
//! bits); each step consumes input.

use super::code::{
    CODES, EOS, LENGTH_CLASSES, LONGEST_BITS, LOOKUP_BITS, LOOKUPS, LengthClass, SYMBOLS,
};
use std::fmt;

/// A string that is not Huffman code: EOS, or padding other than at most seven bits of one
/// (RFC 7541 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HuffmanError;

impl fmt::Display for HuffmanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("string is not valid Huffman code")
    }
}

impl std::error::Error for HuffmanError {}

/// Appends the decoded string to `out`, which an error leaves unchanged.
///
/// # Examples
///
/// ```
/// use outboard_header_compression::huffman;
///
/// let (mut code, mut text) = (Vec::new(), Vec::new());
/// huffman::encode(b"www.example.com", &mut code);
/// assert_eq!(code.len(), 12);
/// huffman::decode(&code, &mut text)?;
/// assert_eq!(text, b"www.example.com");
/// # Ok::<(), huffman::HuffmanError>(())
/// ```
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HuffmanError> {
    let start = out.len();
    // A lookup writes two bytes, even if it has one symbol.
    out.resize(start + input.len() * 8 / 5 + 2, 0);
    let decoded = decode_into(input, &mut out[start..]);
    out.truncate(start + decoded.unwrap_or(0));
    decoded.map(drop)
}

/// The unread bits: the highest `count` of `bits`; the others are zero or bits of the rest.
struct Reader<'a> {
    bits: u64,
    count: u8,
    rest: &'a [u8],
}

impl Reader<'_> {
    /// Reads on until there are more than 55 bits, or no more input.
    #[inline]
    fn refill(&mut self) {
        if let Some(word) = self.rest.first_chunk::<8>() {
            self.bits |= u64::from_be_bytes(*word) >> self.count;
            let bytes = (63 - self.count) / 8;
            self.rest = &self.rest[usize::from(bytes)..];
            self.count += bytes * 8;
            return;
        }
        while self.count <= 56
            && let Some((&byte, rest)) = self.rest.split_first()
        {
            self.bits |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.rest = rest;
        }
    }

    #[inline]
    fn consume(&mut self, bits: u8) {
        self.bits <<= bits;
        self.count -= bits;
    }

    #[inline]
    fn next_bits(&self, bits: u8) -> usize {
        (self.bits >> (64 - bits)) as usize
    }

    /// Reads a symbol whose code is longer than a lookup; needs all bits of the code.
    #[cold]
    fn long_symbol(&mut self) -> Result<u8, HuffmanError> {
        for bits in LOOKUP_BITS + 1..=LONGEST_BITS.min(self.count) {
            let LengthClass { first_code, count, first_symbol } = LENGTH_CLASSES[usize::from(bits)];
            let offset = (self.next_bits(bits) as u32).wrapping_sub(first_code);
            if offset < count {
                self.consume(bits);
                let symbol = SYMBOLS[usize::from(first_symbol) + offset as usize];
                return if symbol == EOS { Err(HuffmanError) } else { Ok(symbol as u8) };
            }
        }
        Err(HuffmanError)
    }

    /// Whether the unread bits are padding (RFC 7541 5.2).
    fn is_padding(&self) -> bool {
        self.count == 0 || self.count < 8 && self.next_bits(self.count) + 1 == 1 << self.count
    }
}

/// Returns the length of the output.
fn decode_into(input: &[u8], out: &mut [u8]) -> Result<usize, HuffmanError> {
    let mut reader = Reader { bits: 0, count: 0, rest: input };
    let mut len = 0;
    loop {
        reader.refill();
        while reader.count >= LOOKUP_BITS {
            let lookup = LOOKUPS[reader.next_bits(LOOKUP_BITS)];
            if lookup.count == 0 {
                if reader.count < LONGEST_BITS && !reader.rest.is_empty() {
                    break;
                }
                out[len] = reader.long_symbol()?;
                len += 1;
                continue;
            }
            out[len..len + 2].copy_from_slice(&lookup.symbols);
            len += usize::from(lookup.count);
            reader.consume(lookup.bits);
        }
        if reader.rest.is_empty() && reader.count < LOOKUP_BITS {
            break;
        }
    }
    loop {
        let lookup = LOOKUPS[reader.next_bits(LOOKUP_BITS)];
        let symbol = lookup.symbols[0];
        let bits = CODES[usize::from(symbol)].bits;
        if lookup.count == 0 || bits > reader.count {
            return if reader.is_padding() { Ok(len) } else { Err(HuffmanError) };
        }
        out[len] = symbol;
        len += 1;
        reader.consume(bits);
    }
}
