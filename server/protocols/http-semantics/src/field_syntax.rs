//! The rules for a field by itself: the bytes of its name and value, and the names that only HTTP/1.1 has.
//!
//! Called by `head_reader` for each field of a request, and by `http2` and `http3` for those of a
//! response. Invariant: what is valid can be written as a line of HTTP/1.1 and means the same there.

use crate::malformed::MalformedFields;

/// Bytes of a token in lower case.
const NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8,
            b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+'
            | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

/// Checks a field that is not a pseudo-header field.
///
/// # Errors
/// HTTP/2 and HTTP/3 do not allow it.
#[inline]
pub fn check_field(name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
    if !is_valid_name(name) {
        return Err(MalformedFields::InvalidName);
    }
    if !is_valid_value(value) {
        return Err(MalformedFields::InvalidValue);
    }
    if is_connection_specific(name) {
        return Err(MalformedFields::ConnectionField);
    }
    Ok(())
}

/// The value of Content-Length: digits alone (RFC 9110 8.6).
///
/// # Errors
/// It is not a number, or one above `u64::MAX`.
pub fn parse_content_length(value: &[u8]) -> Result<u64, MalformedFields> {
    let add = |length: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    };
    let length = value.iter().try_fold(0, add).filter(|_| !value.is_empty());
    length.ok_or(MalformedFields::InvalidContentLength)
}

/// Whether a field name is a token in lower case, as HTTP/2 and HTTP/3 have them (RFC 9113 8.2.1,
/// RFC 9114 4.2).
#[inline]
pub fn is_valid_name(name: &[u8]) -> bool {
    let is_valid = |byte: &u8| NAME_BYTES[usize::from(*byte)];
    let are_common = |word: u64| are_letters_or_dashes(word, word);
    !name.is_empty() && (all_words(name, are_common) || name.iter().all(is_valid))
}

/// Whether the bytes are a token (RFC 9110 5.6.2).
#[inline]
pub fn is_token(bytes: &[u8]) -> bool {
    let is_valid = |byte: &u8| byte.is_ascii_uppercase() || NAME_BYTES[usize::from(*byte)];
    let are_common = |word: u64| are_letters_or_dashes(word | (0x20 * ONES), word);
    !bytes.is_empty() && (all_words(bytes, are_common) || bytes.iter().all(is_valid))
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Whether there are words of eight bytes, and all satisfy the test; the last overlaps with the one
/// before it.
#[inline]
fn all_words(bytes: &[u8], mut test: impl FnMut(u64) -> bool) -> bool {
    let Some(last) = bytes.last_chunk::<8>() else { return false };
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().all(|word| test(u64::from_le_bytes(*word))) && test(u64::from_le_bytes(*last))
}

/// Whether each of eight bytes is a letter in lower case by `lower`, or a dash by `raw`.
#[inline]
fn are_letters_or_dashes(lower: u64, raw: u64) -> bool {
    const HIGH: u64 = 0x80 * ONES;
    // No sum exceeds its byte, because bytes above 127 are refused.
    let low = lower & !HIGH;
    let are_letters = (low + (0x80 - 0x61) * ONES) & !(low + (0x7f - 0x7a) * ONES);
    let dash = raw ^ (0x2d * ONES);
    let are_dashes = !(((dash & !HIGH) + 0x7f * ONES) | dash);
    (are_letters | are_dashes) & !raw & HIGH == HIGH
}

/// Whether a value has neither control bytes other than HTAB nor white space around it (RFC 9110 5.5).
#[inline]
pub fn is_valid_value(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !is_space(value.first()) && !is_space(value.last()) && !has_control(value)
}

/// Whether one of eight bytes may be below 32 or 127. Others are found only next to one that is.
#[inline]
fn may_have_control(word: u64) -> bool {
    let below_space = word.wrapping_sub(0x20 * ONES) & !word;
    let delete = word ^ (0x7f * ONES);
    let is_delete = delete.wrapping_sub(ONES) & !delete;
    (below_space | is_delete) & (0x80 * ONES) != 0
}

/// Whether there is a control byte other than HTAB.
#[inline]
fn has_control(value: &[u8]) -> bool {
    let is_control = |byte: &u8| (*byte < 32 && *byte != 9) || *byte == 127;
    let is_clean = all_words(value, |word| !may_have_control(word));
    !is_clean && value.iter().any(is_control)
}

/// Whether all bytes are visible ASCII.
pub(crate) fn is_visible(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |valid, byte| valid & (*byte > 32) & (*byte < 127))
}

/// Whether a field is about a connection of HTTP/1.1, and not allowed in later versions (RFC 9113
/// 8.2.2, RFC 9114 4.2). The name may have any case.
pub fn is_connection_specific(name: &[u8]) -> bool {
    let other: &[u8] = match name.len() {
        7 => b"upgrade",
        // Two names have this length.
        10 if name[0] | 0x20 == b'k' => b"keep-alive",
        10 => b"connection",
        16 => b"proxy-connection",
        17 => b"transfer-encoding",
        _ => return false,
    };
    name.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_in_lower_case() {
        assert!(is_valid_name(b"x-a_1!"));
        for name in ["", "A", "a b", "a:", "a\0", "\u{e9}", ":path"] {
            assert!(!is_valid_name(name.as_bytes()), "{name}");
        }
        assert!(is_token(b"GET") && !is_token(b"G T") && !is_token(b""));
        for byte in 0..=255 {
            for at in 0..20 {
                let mut name = *b"a-zcontent-lengthabcde";
                name[at + 1] = byte;
                let is_valid = NAME_BYTES[usize::from(byte)];
                assert_eq!(is_valid_name(&name), is_valid, "{byte} at {at}");
                assert_eq!(is_valid_name(&name[at..at + 3]), is_valid, "{byte} at {at}");
                let is_valid = is_valid || byte.is_ascii_uppercase();
                assert_eq!(is_token(&name), is_valid, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn values_have_no_control_bytes_and_no_space_around() {
        for value in ["", "a", "a\tb c", "\u{e9}"] {
            assert!(is_valid_value(value.as_bytes()), "{value}");
        }
        for value in ["a\r\nb", "a\0", "\x7f", " a", "a\t", " "] {
            assert!(!is_valid_value(value.as_bytes()), "{value}");
        }
        for byte in 0..=255 {
            for at in 0..20 {
                let mut value = [b'a'; 22];
                value[at + 1] = byte;
                let is_valid = byte == 9 || (byte >= 32 && byte != 127);
                assert_eq!(is_valid_value(&value), is_valid, "{byte} at {at}");
                assert_eq!(is_valid_value(&value[at..at + 3]), is_valid, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn fields_of_a_connection_are_found_in_any_case() {
        for name in ["Connection", "keep-alive", "UPGRADE", "Proxy-Connection", "transfer-Encoding"]
        {
            assert!(is_connection_specific(name.as_bytes()), "{name}");
        }
        for name in ["", "connectiom", "content-encoding", "set-cookie", "upgrade-insecure"] {
            assert!(!is_connection_specific(name.as_bytes()), "{name}");
        }
    }
}
