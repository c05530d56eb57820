//! Distinguished names (RFC 5280 4.1.2.4) in the text form of RFC 4514, as mod_ssl writes them.
//!
//! Called for the valid certificates of clients. Invariant: the text is valid UTF-8 without control
//! characters, and different names have different texts.

use crate::der::{self, Der, Value};
use std::fmt::Write;

/// The text of a name from its relative names, which are the content of its sequence; `None` if the
/// encoding is invalid.
pub(crate) fn text(name: &[u8]) -> Option<String> {
    let relative: Vec<Value<'_>> = Der(name).collect();
    let mut text = String::new();
    // RFC 4514 2.1: the last relative name precedes.
    for set in relative.iter().rev() {
        // One without attributes would be the same text as none.
        if set.tag != der::SET || set.content.is_empty() {
            return None;
        }
        if !text.is_empty() {
            text.push(',');
        }
        for (index, attribute) in Der(set.content).enumerate() {
            if index > 0 {
                text.push('+');
            }
            push_attribute(&mut text, attribute)?;
        }
    }
    Some(text)
}

fn push_attribute(text: &mut String, attribute: Value<'_>) -> Option<()> {
    let mut parts = Der(attribute.content);
    let oid = parts.expect(der::OBJECT_IDENTIFIER)?;
    let value = parts.next()?;
    let known = short_name(oid).zip(string(value));
    match known {
        Some((name, string)) => {
            text.push_str(name);
            text.push('=');
            push_escaped(text, &string);
        }
        None => {
            push_oid(text, oid)?;
            text.push_str("=#");
            push_hex(text, value.whole);
        }
    }
    Some(())
}

/// OpenSSL's short names.
fn short_name(oid: &[u8]) -> Option<&'static str> {
    Some(match oid {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 4] => "SN",
        [0x55, 4, 5] => "serialNumber",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 9] => "street",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        [0x55, 4, 12] => "title",
        [0x55, 4, 42] => "GN",
        [0x55, 4, 43] => "initials",
        [0x55, 4, 46] => "dnQualifier",
        [0x55, 4, 65] => "pseudonym",
        // 0.9.2342.19200300.100.1.1 and .25
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1] => "UID",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => "DC",
        // 1.2.840.113549.1.9.1
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1] => "emailAddress",
        _ => return None,
    })
}

fn string(value: Value<'_>) -> Option<String> {
    let bytes = value.content;
    match value.tag {
        der::UTF8_STRING | der::PRINTABLE_STRING | der::IA5_STRING => {
            String::from_utf8(bytes.to_vec()).ok()
        }
        // As OpenSSL does: Latin-1.
        der::TELETEX_STRING => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
        der::BMP_STRING if bytes.len().is_multiple_of(2) => {
            let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).collect::<Result<_, _>>().ok()
        }
        _ => None,
    }
}

/// RFC 4514 2.4.
fn push_escaped(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (index, character) in value.chars().enumerate() {
        let is_at_edge =
            (index == 0 && matches!(character, ' ' | '#')) || (index == last && character == ' ');
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => text.extend(['\\', character]),
            _ if is_at_edge => text.extend(['\\', character]),
            _ if character.is_control() => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    text.push('\\');
                    push_hex(text, &[byte]);
                }
            }
            _ => text.push(character),
        }
    }
}

pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02X}");
    }
}

/// X.690 8.19: the first two arcs share a number.
fn push_oid(text: &mut String, oid: &[u8]) -> Option<()> {
    let (mut arc, mut is_first) = (0_u64, true);
    for &byte in oid {
        arc = arc.checked_mul(128)? + u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        let _ = match is_first {
            true => {
                let root = (arc / 40).min(2);
                write!(text, "{root}.{}", arc - root * 40)
            }
            false => write!(text, ".{arc}"),
        };
        (arc, is_first) = (0, false);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn attribute(oid: &[u8], tag: u8, string: &[u8]) -> Vec<u8> {
        let content = [value(der::OBJECT_IDENTIFIER, oid), value(tag, string)].concat();
        value(der::SEQUENCE, &content)
    }

    fn relative(attributes: &[Vec<u8>]) -> Vec<u8> {
        value(der::SET, &attributes.concat())
    }

    #[test]
    fn the_last_relative_name_is_written_first() {
        let name = [
            relative(&[attribute(&[0x55, 4, 6], der::PRINTABLE_STRING, b"DE")]),
            relative(&[
                attribute(&[0x55, 4, 3], der::UTF8_STRING, "Jürgen".as_bytes()),
                attribute(&[0x55, 4, 11], der::UTF8_STRING, b"Shop"),
            ]),
        ];
        assert_eq!(text(&name.concat()).unwrap(), "CN=Jürgen+OU=Shop,C=DE");
    }

    #[test]
    fn special_characters_are_escaped() {
        for (string, written) in [
            ("a,b+c", "CN=a\\,b\\+c"),
            ("#1 ", "CN=\\#1\\ "),
            (" x y", "CN=\\ x y"),
            ("a\nCN=b", "CN=a\\0ACN=b"),
            ("a\"\\<>;", "CN=a\\\"\\\\\\<\\>\\;"),
            ("", "CN="),
        ] {
            let name = relative(&[attribute(&[0x55, 4, 3], der::UTF8_STRING, string.as_bytes())]);
            assert_eq!(text(&name).unwrap(), written);
        }
    }

    #[test]
    fn strings_of_every_kind_and_unknown_attributes_have_a_text() {
        let of = |oid: &[u8], tag, string: &[u8]| text(&relative(&[attribute(oid, tag, string)]));
        assert_eq!(of(&[0x55, 4, 10], der::TELETEX_STRING, b"\xe9").unwrap(), "O=é");
        assert_eq!(of(&[0x55, 4, 10], der::BMP_STRING, b"\0A\x20\xac").unwrap(), "O=A€");
        // A surrogate alone.
        assert_eq!(of(&[0x55, 4, 10], der::BMP_STRING, b"\xd8\0").unwrap(), "2.5.4.10=#1E02D800");
        let unknown = of(&[0x2a, 0x86, 0x48, 0x01], der::UTF8_STRING, b"x");
        assert_eq!(unknown.unwrap(), "1.2.840.1=#0C0178");
    }

    #[test]
    fn invalid_names_have_no_text() {
        assert_eq!(text(&relative(&[vec![der::SEQUENCE, 1, 6]])), None);
        assert_eq!(text(&[]).as_deref(), Some(""));
    }

    #[test]
    fn a_relative_name_without_attributes_has_no_text() {
        let ann = relative(&[attribute(&[0x55, 4, 3], der::UTF8_STRING, b"Ann")]);
        let (none, not_a_set) = (relative(&[]), value(der::SEQUENCE, b""));
        assert_eq!(text(&ann).as_deref(), Some("CN=Ann"));
        for name in [vec![&none], vec![&none, &ann], vec![&ann, &none], vec![&ann, &not_a_set]] {
            let name: Vec<u8> = name.into_iter().flatten().copied().collect();
            assert_eq!(text(&name), None, "{name:?}");
        }
    }
}
