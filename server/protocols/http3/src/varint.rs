//! Variable-length integers (RFC 9000 16).
//!
//! Called by every reader and writer of frames. Invariant: a value has at most 62 bits and eight bytes.

/// The largest value.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// The length of the longest encoding.
pub(crate) const VARINT_BYTES_MAX: usize = 8;

/// Reads an integer from the start of `input`; `None` if it is incomplete.
pub fn read_varint(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    let (bytes, rest) = input.split_at_checked(1 << (first >> 6))?;
    let value = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    *input = rest;
    // The highest two bits of the first byte are the length.
    Some(value & (u64::MAX >> 2 >> (64 - 8 * bytes.len())))
}

/// Appends the shortest encoding of `value`; one with more than 62 bits becomes [`VARINT_MAX`].
pub fn write_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => {
            out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes());
        }
        _ => out.extend_from_slice(&(value.min(VARINT_MAX) | 3 << 62).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_are_those_of_rfc_9000_appendix_a_1() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(read_varint(&mut &*bytes), Some(value));
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(read_varint(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read_varint(&mut &[0x40, 0x25][..]), Some(37));
    }

    proptest! {
        #[test]
        fn integers_survive(value in 0..=VARINT_MAX, shift in 0..62u32) {
            let value = value >> shift;
            let mut out = Vec::new();
            write_varint(&mut out, value);
            let mut input = &out[..];
            prop_assert_eq!(read_varint(&mut input), Some(value));
            prop_assert!(input.is_empty());
        }
    }
}
