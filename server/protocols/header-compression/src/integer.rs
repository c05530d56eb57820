//! Prefixed integers (RFC 7541 5.1, RFC 9204 4.1.1).
//!
//! Called by `string` and by the decoders and encoders. Invariant: a value is at most 2^62 - 1 and has
//! at most ten bytes.

use crate::error::DecodeError;

/// The largest value of QPACK (RFC 9204 4.1.1); no field or table of HPACK comes near it.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Nine bytes after the first one hold 63 bits.
const MAX_SHIFT: u32 = 8 * 7;

/// Reads an integer from the lowest `prefix_bits` of the first byte and the bytes after it.
#[inline]
pub(crate) fn read(input: &mut &[u8], prefix_bits: u8) -> Result<u64, DecodeError> {
    let (&first, rest) = input.split_first().ok_or(DecodeError::Truncated)?;
    let prefix_max = (1 << prefix_bits) - 1;
    let prefix = u64::from(first) & prefix_max;
    *input = rest;
    if prefix < prefix_max { Ok(prefix) } else { read_continuation(input, prefix) }
}

fn read_continuation(input: &mut &[u8], mut value: u64) -> Result<u64, DecodeError> {
    let mut shift = 0;
    loop {
        let (&byte, rest) = input.split_first().ok_or(DecodeError::Truncated)?;
        *input = rest;
        value += u64::from(byte & 0x7f) << shift;
        if value > MAX {
            return Err(DecodeError::IntegerOverflow);
        }
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        shift += 7;
        if shift > MAX_SHIFT {
            return Err(DecodeError::IntegerOverflow);
        }
    }
}

/// Writes `value` behind the highest bits of the first byte, which are `flags`.
#[inline]
pub(crate) fn write(out: &mut Vec<u8>, flags: u8, prefix_bits: u8, value: u64) {
    let prefix_max = (1 << prefix_bits) - 1;
    if value < prefix_max {
        out.push(flags | value as u8);
    } else {
        out.push(flags | prefix_max as u8);
        write_continuation(out, value - prefix_max);
    }
}

fn write_continuation(out: &mut Vec<u8>, mut rest: u64) {
    while rest >= 0x80 {
        out.push(0x80 | rest as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(flags: u8, prefix_bits: u8, value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, flags, prefix_bits, value);
        out
    }

    #[test]
    fn integers_are_those_of_appendix_c_1() {
        for (prefix_bits, value, expected) in [
            (5, 10, &[10][..]),
            (5, 1337, &[0x1f, 0x9a, 0x0a]),
            (8, 42, &[42]),
            (5, 30, &[30]),
            (5, 31, &[31, 0]),
            (8, 254, &[254]),
            (8, 255, &[255, 0]),
        ] {
            assert_eq!(written(0, prefix_bits, value), expected);
            let mut input = expected;
            assert_eq!(read(&mut input, prefix_bits), Ok(value));
            assert!(input.is_empty());
        }
    }

    #[test]
    fn incomplete_integers_are_truncated() {
        for input in [&[][..], &[0x1f], &[0x1f, 0x80], &[0xff, 0xff, 0xff]] {
            assert_eq!(read(&mut &*input, 5), Err(DecodeError::Truncated), "{input:x?}");
        }
    }

    #[test]
    fn values_above_62_bits_and_long_encodings_are_rejected() {
        let mut largest = written(0, 5, MAX);
        assert_eq!(read(&mut &largest[..], 5), Ok(MAX));
        assert_eq!(largest.len(), 10);
        largest[1] += 1;
        assert_eq!(read(&mut &largest[..], 5), Err(DecodeError::IntegerOverflow));
        for continuation in [0x80, 0xff] {
            let long = [&[0x1f][..], &[continuation; 20]].concat();
            assert_eq!(read(&mut &long[..], 5), Err(DecodeError::IntegerOverflow));
        }
        // Zeros in the highest places are allowed as long as the encoding is not too long.
        assert_eq!(read(&mut &[0x1f, 0x81, 0x80, 0][..], 5), Ok(32));
    }

    proptest! {
        #[test]
        fn integers_survive(value in 0..=MAX, prefix_bits in 3..=8u8, flags: u8) {
            let flags = if prefix_bits == 8 { 0 } else { flags >> prefix_bits << prefix_bits };
            let bytes = written(flags, prefix_bits, value);
            let mut input = &bytes[..];
            prop_assert_eq!(read(&mut input, prefix_bits), Ok(value));
            prop_assert!(input.is_empty());
            prop_assert_eq!(bytes[0] & flags, flags);
        }
    }
}
