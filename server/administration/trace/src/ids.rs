//! [`TraceId`], [`SpanId`], and [`Ids`], which generates them.
//!
//! A thread has one generator. Invariant: no id is zero, which stands for none.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// The id of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub(crate) [u8; 16]);

/// The id of a span within its trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub(crate) [u8; 8]);

macro_rules! id {
    ($id:ident, $bytes:literal) => {
        impl $id {
            /// An id of these bytes, unless they are zero.
            pub fn new(bytes: [u8; $bytes]) -> Option<Self> {
                (bytes != [0; $bytes]).then_some(Self(bytes))
            }

            /// An id in lower-case hexadecimal digits.
            pub fn parse(digits: &[u8]) -> Option<Self> {
                let mut bytes = [0; $bytes];
                parse_hex(digits, &mut bytes)?;
                Self::new(bytes)
            }

            /// The bytes.
            pub fn bytes(self) -> [u8; $bytes] {
                self.0
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

id!(TraceId, 16);
id!(SpanId, 8);

impl SpanId {
    /// The id of a part of this span with a number of its own. It is known before that part has ended, so
    /// that parts of it can name it.
    pub fn child(self, number: u32) -> Self {
        // SplitMix64's finalizer (Steele and others, "Fast Splittable Pseudorandom Number Generators"): a
        // bijection, so that different numbers have different ids.
        let mut mixed = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let id = u64::from_be_bytes(self.0) ^ mixed ^ (mixed >> 31);
        Self(id.max(1).to_be_bytes())
    }
}

/// Reads lower-case hexadecimal digits of exactly as many bytes.
pub(crate) fn parse_hex(digits: &[u8], bytes: &mut [u8]) -> Option<()> {
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(())
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Writes bytes, a multiple of four, in lower-case hexadecimal digits; there is room for them. Each request to PHP
/// has a field of them.
pub(crate) fn write_hex(bytes: &[u8], digits: &mut [u8]) {
    for (four, eight) in bytes.chunks_exact(4).zip(digits.chunks_exact_mut(8)) {
        let four = u32::from_be_bytes(four.try_into().expect("the chunk has four bytes"));
        eight.copy_from_slice(&hex_digits(four));
    }
}

/// The digits of a number, all at once.
fn hex_digits(number: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // A byte for each four bits.
    let mut spread = u64::from(number);
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    spread = (spread | spread << 4) & (0x0f * EACH);
    let is_letter = ((spread + 6 * EACH) >> 4) & EACH;
    let distance = u64::from(b'a' - b'9' - 1);
    (spread + u64::from(b'0') * EACH + is_letter * distance).to_be_bytes()
}

/// Random ids by xoroshiro128++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators"),
/// from a random seed. They need not be unpredictable: all who see a trace see its ids.
#[derive(Debug)]
pub struct Ids([Cell<u64>; 2]);

impl Default for Ids {
    fn default() -> Self {
        let random = |n: u64| RandomState::new().hash_one(n);
        // A state of zeros would stay.
        Self([Cell::new(random(1) | 1), Cell::new(random(2))])
    }
}

impl Ids {
    /// A random number.
    pub fn number(&self) -> u64 {
        let [low, high] = [self.0[0].get(), self.0[1].get()];
        let number = low.wrapping_add(high).rotate_left(17).wrapping_add(low);
        let mixed = high ^ low;
        self.0[0].set(low.rotate_left(49) ^ mixed ^ (mixed << 21));
        self.0[1].set(mixed.rotate_left(28));
        number
    }

    /// A new trace.
    pub fn trace_id(&self) -> TraceId {
        loop {
            let number = u128::from(self.number()) << 64 | u128::from(self.number());
            if let Some(id) = TraceId::new(number.to_be_bytes()) {
                return id;
            }
        }
    }

    /// A new span.
    pub fn span_id(&self) -> SpanId {
        loop {
            if let Some(id) = SpanId::new(self.number().to_be_bytes()) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_also_between_generators() {
        let generators: Vec<Ids> = (0..4).map(|_| Ids::default()).collect();
        let ids: HashSet<SpanId> = (0..4_000).map(|n| generators[n % 4].span_id()).collect();
        assert_eq!(ids.len(), 4_000);
    }

    #[test]
    fn parts_of_a_span_have_ids_of_their_own() {
        let span = Ids::default().span_id();
        let ids: HashSet<SpanId> = (0..4_000).map(|n| span.child(n)).collect();
        assert!(ids.len() == 4_000 && !ids.contains(&span));
        assert_eq!(span.child(7), span.child(7));
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for number in [0, 1, 0x9a09_f00f, 0x0123_4567, 0x89ab_cdef, u32::MAX] {
            assert_eq!(hex_digits(number), format!("{number:08x}").as_bytes());
        }
    }

    #[test]
    fn an_id_is_its_digits() {
        let digits = "00f067aa0ba902b7";
        assert_eq!(SpanId::parse(digits.as_bytes()).unwrap().to_string(), digits);
        for bad in ["00f067aa0ba902b", "00F067AA0BA902B7", "0000000000000000", "00f067aa0ba902bg"] {
            assert_eq!(SpanId::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
