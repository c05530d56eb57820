//! The fields of a message, and the rules for each (RFC 9114 4.2).
//!
//! Called by `request` for heads and by `connection` for trailers. Invariant: each field can be written
//! as a line of HTTP/1.1: the name is a token in lower case, the value has no control byte.

use crate::error::MalformedFields;
use std::ops::Range;

/// The characters of a name in lower case (RFC 9110 5.6.2, RFC 9114 4.2).
static IS_NAME_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        table[byte] = matches!(
            character,
            b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+'
                | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        );
        byte += 1;
    }
    table
};

/// Where a field is in the buffer of its list.
#[derive(Debug, Clone)]
struct Span {
    name: Range<usize>,
    value: Range<usize>,
}

/// Names and values in the order of the message.
#[derive(Debug, Clone, Default)]
pub struct FieldList {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl FieldList {
    /// The names, in lower case, and the values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans
            .iter()
            .map(|span| (&self.bytes[span.name.clone()], &self.bytes[span.value.clone()]))
    }

    /// The first value of a field whose name is `name`, in lower case.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Stores bytes that are not a field.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    pub(crate) fn stored(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Adds a field other than a pseudo-header field.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
        check_field(name, value)?;
        let (name, value) = (self.store(name), self.store(value));
        self.spans.push(Span { name, value });
        Ok(())
    }
}

/// Whether a field is meaningful for a single connection, and not allowed in HTTP/3 (RFC 9114 4.2).
pub fn is_connection_field(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] =
        [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];
    NAMES.iter().any(|connection_field| name.eq_ignore_ascii_case(connection_field))
}

fn check_field(name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
    if name.is_empty() || !name.iter().all(|&byte| IS_NAME_BYTE[usize::from(byte)]) {
        return Err(MalformedFields::InvalidName);
    }
    if !is_value(value) {
        return Err(MalformedFields::InvalidValue);
    }
    let is_allowed = !is_connection_field(name)
        && (name != b"te" || value.is_empty() || value.eq_ignore_ascii_case(b"trailers"));
    if is_allowed { Ok(()) } else { Err(MalformedFields::ConnectionField) }
}

fn is_value(value: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 10..=31 | 127);
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !is_space(value.first()) && !is_space(value.last()) && !value.iter().any(is_control)
}

/// Whether `bytes` is a token of either case.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    let is_token_byte = |byte: &u8| IS_NAME_BYTE[usize::from(byte.to_ascii_lowercase())];
    !bytes.is_empty() && bytes.iter().all(is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_checked() {
        use MalformedFields::*;
        let mut list = FieldList::default();
        for (name, value, expected) in [
            ("accept", "*/*", Ok(())),
            ("x-`~1", "a\tb \u{e9}", Ok(())),
            ("te", "trailers", Ok(())),
            ("empty", "", Ok(())),
            ("Accept", "a", Err(InvalidName)),
            ("", "a", Err(InvalidName)),
            ("a b", "a", Err(InvalidName)),
            (":path", "/", Err(InvalidName)),
            ("a", "a\r", Err(InvalidValue)),
            ("a", "a\nb", Err(InvalidValue)),
            ("a", "\0", Err(InvalidValue)),
            ("a", "\u{7f}", Err(InvalidValue)),
            ("a", " b", Err(InvalidValue)),
            ("a", "b\t", Err(InvalidValue)),
            ("connection", "close", Err(ConnectionField)),
            ("transfer-encoding", "chunked", Err(ConnectionField)),
            ("upgrade", "a", Err(ConnectionField)),
            ("te", "gzip", Err(ConnectionField)),
            ("te", "trailers, gzip", Err(ConnectionField)),
        ] {
            let result = list.push(name.as_bytes(), value.as_bytes());
            assert_eq!(result, expected, "{name}: {value:?}");
        }
        assert_eq!(list.len(), 4);
        assert_eq!(list.get(b"te"), Some(&b"trailers"[..]));
        assert_eq!(list.iter().next(), Some((&b"accept"[..], &b"*/*"[..])));
    }
}
