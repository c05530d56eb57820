//! [`Der`]: a reader of the distinguished encoding rules (X.690), as far as fields of certificates need it.
//!
//! Used for certificates that webpki has parsed. Invariant: any input ends in values or `None`.

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const TELETEX_STRING: u8 = 0x14;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const BMP_STRING: u8 = 0x1e;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// With tag and length.
    pub(crate) whole: &'a [u8],
}

/// Consecutive values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next value if it has this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|value| value.tag == tag).map(|value| value.content)
    }

    /// The same, as consecutive values.
    pub(crate) fn enter(&mut self, tag: u8) -> Option<Der<'a>> {
        self.expect(tag).map(Der)
    }

    /// Skips the next value if it has this tag.
    pub(crate) fn skip_optional(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.next();
        }
    }
}

impl<'a> Iterator for Der<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Value { tag, content, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_lengths_of_any_form() {
        let long = [&[SEQUENCE, 0x82, 1, 0][..], &[7; 256]].concat();
        for (input, length) in [(&[INTEGER, 1, 5][..], 1), (&[SET, 0x81, 2, 1, 2], 2), (&long, 256)]
        {
            let mut reader = Der(input);
            let value = reader.next().unwrap();
            assert_eq!((value.content.len(), value.whole), (length, input));
            assert_eq!(reader.next(), None);
            for cut in 0..input.len() {
                assert_eq!(Der(&input[..cut]).next(), None);
            }
        }
        // An indefinite length, and one of four bytes.
        assert_eq!(Der(&[SEQUENCE, 0x80, 0, 0]).next(), None);
        assert_eq!(Der(&[SEQUENCE, 0x84, 0, 0, 0, 0]).next(), None);
    }
}
