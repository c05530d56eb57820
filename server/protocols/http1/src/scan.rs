//! Byte classes and the search for control bytes: the inner loops of every parser here.
//!
//! Called by the line parsers; every function reads each byte once.

/// RFC 9110 5.6.2: the characters of a token (methods, field names, transfer codings).
const TCHAR: [bool; 256] = class(b"!#$%&'*+-.^_`|~");

/// RFC 9112 3.2 as clients send it: visible ASCII without the fragment's `#`, and non-ASCII bytes.
///
/// Wider than RFC 3986 (`"<>\^{|}`, the backtick and UTF-8 pass), because browsers and curl send
/// those unencoded, nginx and Apache accept them, and none of them changes the end of the target.
const TARGET: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = byte != b'#' as usize;
        byte += 1;
    }
    let mut byte = 0x80;
    while byte < 256 {
        table[byte] = true;
        byte += 1;
    }
    table
};

const fn class(punctuation: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < punctuation.len() {
        table[punctuation[at] as usize] = true;
        at += 1;
    }
    table
}

/// Length of the token at the start of `bytes`; `None` if all bytes are token characters.
pub(crate) fn token_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| !TCHAR[byte as usize])
}

/// Whether `bytes` is a token and not empty.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && token_end(bytes).is_none()
}

/// Length of the request target at the start of `bytes`; `None` if it does not end here.
pub(crate) fn target_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| !TARGET[byte as usize])
}

/// Index of the first control byte other than HTAB: 0x00..0x1f or 0x7f.
///
/// Reads eight bytes at a time. A subtraction borrows only from a byte that is itself a hit, so the
/// lowest marked byte is always correct.
pub(crate) fn find_control(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES * 0x80;
    let mut at = 0;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let del = word ^ (ONES * 0x7f);
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let is_del = del.wrapping_sub(ONES) & !del;
        let hits = (below_space | is_del) & HIGH;
        if hits == 0 {
            at += 8;
            continue;
        }
        let hit = at + (hits.trailing_zeros() / 8) as usize;
        if bytes[hit] != b'\t' {
            return Some(hit);
        }
        at = hit + 1;
    }
    let tail = bytes[at..].iter().position(|&byte| is_control(byte))?;
    Some(at + tail)
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// RFC 9110 5.6.3: SP or HTAB.
pub(crate) fn is_ows(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// `bytes` without optional white space at either end.
pub(crate) fn trim_ows(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|&byte| !is_ows(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|&byte| !is_ows(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_search_agrees_with_the_byte_by_byte_definition() {
        for byte in 0..=255u8 {
            for at in 0..20 {
                let mut bytes = [b'a'; 20];
                bytes[at] = byte;
                let expected = is_control(byte).then_some(at);
                assert_eq!(find_control(&bytes), expected, "byte {byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn control_search_passes_tabs_and_finds_the_first_of_several() {
        assert_eq!(find_control(b"\ta\tb\tcdefghi\tj\x7f\r\n"), Some(14));
        assert_eq!(find_control(b"\xff\x80\xa0 obs-text\r"), Some(12));
    }

    #[test]
    fn trimming_keeps_inner_white_space() {
        assert_eq!(trim_ows(b" \t a \t b\t "), b"a \t b");
        assert_eq!(trim_ows(b" \t "), b"");
    }
}
