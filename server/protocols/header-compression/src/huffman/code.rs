//! The code of each symbol (RFC 7541 appendix B), and the tables that are derived from it.
//!
//! Called by `decoder` and `encoder`. Invariant: the code is canonical: codes of one length are
//! consecutive in the order of their symbols, and so the lengths are the whole definition.

/// The length of the code of each symbol, in bits; the last symbol is EOS.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The number of the symbol that ends no string (RFC 7541 5.2).
pub(super) const EOS: u16 = 256;

/// The length of the longest code, that of EOS.
pub(super) const LONGEST_BITS: u8 = 30;

/// The bits that [`Lookup`] reads at a time: two of the most frequent characters, in a table of 16 KB.
pub(super) const LOOKUP_BITS: u8 = 12;

/// The code of a symbol, in the lowest `bits`.
#[derive(Clone, Copy)]
pub(super) struct Code {
    pub(super) code: u32,
    pub(super) bits: u8,
}

/// The code of each byte.
pub(super) static CODES: [Code; 256] = codes(false);

/// The code of each byte in lower case.
pub(super) static LOWERCASE_CODES: [Code; 256] = codes(true);

const fn codes(lowercase: bool) -> [Code; 256] {
    let all = all_codes();
    let mut codes = [Code { code: 0, bits: 0 }; 256];
    let mut byte = 0;
    while byte < 256 {
        let symbol = if lowercase { (byte as u8).to_ascii_lowercase() } else { byte as u8 };
        codes[byte] = all[symbol as usize];
        byte += 1;
    }
    codes
}

const fn all_codes() -> [Code; 257] {
    let mut codes = [Code { code: 0, bits: 0 }; 257];
    let (mut code, mut bits) = (0, 1);
    while bits <= LONGEST_BITS {
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] == bits {
                codes[symbol] = Code { code, bits };
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        bits += 1;
    }
    codes
}

/// What the next [`LOOKUP_BITS`] begin with.
#[derive(Clone, Copy)]
pub(super) struct Lookup {
    /// One or two symbols.
    pub(super) symbols: [u8; 2],
    /// How many; 0 if the first code is longer than these bits.
    pub(super) count: u8,
    /// The length of their codes together.
    pub(super) bits: u8,
}

/// All values of the next [`LOOKUP_BITS`].
pub(super) static LOOKUPS: [Lookup; 1 << LOOKUP_BITS] = lookups();

const fn lookups() -> [Lookup; 1 << LOOKUP_BITS] {
    let single = single_lookups();
    let mut pairs = single;
    let mut index = 0;
    while index < single.len() {
        let first = single[index];
        let second = single[(index << first.bits) % single.len()];
        let bits = first.bits + second.bits;
        if first.count == 1 && second.count == 1 && bits <= LOOKUP_BITS {
            let symbols = [first.symbols[0], second.symbols[0]];
            pairs[index] = Lookup { symbols, count: 2, bits };
        }
        index += 1;
    }
    pairs
}

const fn single_lookups() -> [Lookup; 1 << LOOKUP_BITS] {
    let none = Lookup { symbols: [0; 2], count: 0, bits: 0 };
    let codes = all_codes();
    let mut lookups = [none; 1 << LOOKUP_BITS];
    let mut byte = 0;
    while byte < 256 {
        let Code { code, bits } = codes[byte];
        if bits <= LOOKUP_BITS {
            let free = LOOKUP_BITS - bits;
            let mut rest = 0;
            while rest < 1 << free {
                let symbols = [byte as u8, 0];
                let lookup = Lookup { symbols, count: 1, bits };
                lookups[((code as usize) << free) + rest] = lookup;
                rest += 1;
            }
        }
        byte += 1;
    }
    lookups
}

/// The codes of one length.
#[derive(Clone, Copy)]
pub(super) struct LengthClass {
    /// The first of them.
    pub(super) first_code: u32,
    /// How many there are.
    pub(super) count: u32,
    /// Where their symbols begin in [`SYMBOLS`].
    pub(super) first_symbol: u16,
}

/// The classes by length in bits.
pub(super) static LENGTH_CLASSES: [LengthClass; LONGEST_BITS as usize + 1] = length_classes().0;

/// The symbols in the order of their codes.
pub(super) static SYMBOLS: [u16; 257] = length_classes().1;

const fn length_classes() -> ([LengthClass; LONGEST_BITS as usize + 1], [u16; 257]) {
    let codes = all_codes();
    let none = LengthClass { first_code: 0, count: 0, first_symbol: 0 };
    let mut classes = [none; LONGEST_BITS as usize + 1];
    let mut symbols = [0; 257];
    let (mut sorted, mut bits) = (0, 1);
    while bits < classes.len() {
        let mut symbol = 0;
        while symbol < codes.len() {
            if codes[symbol].bits as usize == bits {
                if classes[bits].count == 0 {
                    classes[bits].first_code = codes[symbol].code;
                    classes[bits].first_symbol = sorted as u16;
                }
                classes[bits].count += 1;
                symbols[sorted] = symbol as u16;
                sorted += 1;
            }
            symbol += 1;
        }
        bits += 1;
    }
    (classes, symbols)
}
