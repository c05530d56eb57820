//! The head of a response: its status and fields (RFC 9114 4.3.2).
//!
//! Called by `client` with each field as it is decoded. Invariant: a head that is accepted has one
//! status and at most one length.

use outboard_http_semantics::{Fields, MalformedFields, check_field, parse_content_length};

/// The head of a response, interim or final.
#[derive(Debug, Clone, Default)]
pub struct ResponseHead {
    status: Option<u16>,
    fields: Fields,
    content_length: Option<u64>,
}

impl ResponseHead {
    /// `:status`.
    pub fn status(&self) -> u16 {
        self.status.unwrap_or_default()
    }

    /// All other fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Content-Length; that of a response without a body describes another one (RFC 9110 8.6).
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    pub(crate) fn is_interim(&self) -> bool {
        self.status() < 200
    }

    pub(crate) fn clear(&mut self) {
        self.status = None;
        self.fields.clear();
        self.content_length = None;
    }

    /// Adds a field.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
        if name.first() == Some(&b':') {
            return self.push_pseudo(name, value);
        }
        check_field(name, value)?;
        if name == b"content-length"
            && self.content_length.replace(parse_content_length(value)?).is_some()
        {
            return Err(MalformedFields::DuplicateField);
        }
        self.fields.push(name, value);
        Ok(())
    }

    fn push_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
        if name != b":status" {
            return Err(MalformedFields::UnexpectedPseudoField);
        }
        if !self.fields.is_empty() {
            return Err(MalformedFields::LatePseudoField);
        }
        match self.status.replace(read_status(value)?) {
            Some(_) => Err(MalformedFields::DuplicateField),
            None => Ok(()),
        }
    }

    /// Checks the complete head. HTTP/3 has no 101 (RFC 9114 4.5).
    pub(crate) fn check(&self) -> Result<(), MalformedFields> {
        match self.status {
            None => Err(MalformedFields::MissingPseudoField),
            Some(101) => Err(MalformedFields::InvalidStatus),
            Some(_) => Ok(()),
        }
    }
}

/// Three digits, of which the first is the class (RFC 9110 15).
fn read_status(value: &[u8]) -> Result<u16, MalformedFields> {
    match *value {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Ok([a, b, c].iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
        }
        _ => Err(MalformedFields::InvalidStatus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> Result<ResponseHead, MalformedFields> {
        let mut head = ResponseHead::default();
        for (name, value) in fields {
            head.push(name.as_bytes(), value.as_bytes())?;
        }
        head.check().map(|()| head)
    }

    #[test]
    fn a_head_has_a_status_and_a_length() {
        let head = read(&[(":status", "404"), ("content-length", "12"), ("a", "b")]).unwrap();
        assert_eq!((head.status(), head.content_length()), (404, Some(12)));
        assert_eq!(head.fields().get(b"a"), Some(&b"b"[..]));
    }

    #[test]
    fn malformed_heads_are_rejected() {
        use MalformedFields::*;
        for (fields, expected) in [
            (&[][..], MissingPseudoField),
            (&[("a", "b"), (":status", "200")], LatePseudoField),
            (&[(":status", "200"), (":status", "200")], DuplicateField),
            (&[(":status", "200"), (":path", "/")], UnexpectedPseudoField),
            (&[(":status", "20")], InvalidStatus),
            (&[(":status", "2000")], InvalidStatus),
            (&[(":status", "020")], InvalidStatus),
            (&[(":status", "101")], InvalidStatus),
            (&[(":status", "200"), ("content-length", "-1")], InvalidContentLength),
            (&[("content-length", "1"), ("content-length", "1")], DuplicateField),
            (&[(":status", "200"), ("A", "b")], InvalidName),
        ] {
            assert_eq!(read(fields).map(|_| ()), Err(expected), "{fields:?}");
        }
    }
}
