//! Dictionaries of structured fields (RFC 9651 4.2.2), as far as cache directives need them.
//!
//! Called by [`crate::targeted`]. Invariant: a dictionary is read whole or not at all; parameters
//! are checked and dropped (RFC 9213 2.1). What a member says is borrowed.

/// The value of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A Boolean; a member without a value is true.
    Boolean(bool),
    /// An Integer.
    Integer(i64),
    /// A String without its quotes, its escapes as written.
    String(&'a [u8]),
    /// A Token.
    Token,
    /// Of a type that no directive uses.
    Other,
}

/// The members of a dictionary in order, a name that comes again with its last value; `None` when
/// it is malformed.
pub(crate) fn dictionary(field: &[u8]) -> Option<Vec<(&[u8], Item<'_>)>> {
    let mut text = Text(field.trim_ascii());
    let mut members: Vec<(&[u8], Item<'_>)> = Vec::new();
    while !text.0.is_empty() {
        let key = text.key()?;
        let value = match text.take(b'=') {
            true => text.member()?,
            false => Item::Boolean(true),
        };
        text.parameters()?;
        members.retain(|(known, _)| *known != key);
        members.push((key, value));
        text.skip_space();
        if text.0.is_empty() {
            break;
        }
        if !text.take(b',') {
            return None;
        }
        text.skip_space();
        if text.0.is_empty() {
            return None;
        }
    }
    Some(members)
}

/// What is still to be read.
struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn take(&mut self, wanted: u8) -> bool {
        let found = self.0.first() == Some(&wanted);
        if found {
            self.0 = &self.0[1..];
        }
        found
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// As many bytes as satisfy `is`.
    fn take_while(&mut self, is: impl Fn(&u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !is(byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        let starts = matches!(self.0.first(), Some(b'a'..=b'z' | b'*'));
        let is_key = |byte: &u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte)
        };
        starts.then(|| self.take_while(is_key))
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            while self.take(b' ') {}
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    /// An item or an inner list.
    fn member(&mut self) -> Option<Item<'a>> {
        if !self.take(b'(') {
            return self.bare_item();
        }
        loop {
            while self.take(b' ') {}
            if self.take(b')') {
                return Some(Item::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.0.first(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    fn bare_item(&mut self) -> Option<Item<'a>> {
        match *self.0.first()? {
            b'"' => self.string(),
            b'?' => self.boolean(),
            b'-' | b'0'..=b'9' => self.number(),
            b'@' => {
                self.take(b'@');
                matches!(self.number()?, Item::Integer(_)).then_some(Item::Other)
            }
            b':' => self.bytes(),
            b'%' => self.display_string(),
            b'*' | b'a'..=b'z' | b'A'..=b'Z' => {
                let is_token =
                    |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(byte);
                self.take_while(is_token);
                Some(Item::Token)
            }
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Item<'a>> {
        let inner = &self.0[1..];
        let mut at = 0;
        loop {
            match inner.get(at)? {
                b'"' => break,
                b'\\' if matches!(inner.get(at + 1), Some(b'"' | b'\\')) => at += 2,
                b' '..=b'[' | b']'..=b'~' => at += 1,
                _ => return None,
            }
        }
        self.0 = &inner[at + 1..];
        Some(Item::String(&inner[..at]))
    }

    fn boolean(&mut self) -> Option<Item<'a>> {
        let value = match self.0 {
            [b'?', b'0', ..] => false,
            [b'?', b'1', ..] => true,
            _ => return None,
        };
        self.0 = &self.0[2..];
        Some(Item::Boolean(value))
    }

    /// At most 15 digits, or 12 before and 1 to 3 behind the point.
    fn number(&mut self) -> Option<Item<'a>> {
        let negative = self.take(b'-');
        let whole = self.take_while(u8::is_ascii_digit);
        if whole.is_empty() || whole.len() > 15 {
            return None;
        }
        if self.take(b'.') {
            let part = self.take_while(u8::is_ascii_digit);
            return ((1..=3).contains(&part.len()) && whole.len() <= 12).then_some(Item::Other);
        }
        let number = whole.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Some(Item::Integer(if negative { -number } else { number }))
    }

    fn bytes(&mut self) -> Option<Item<'a>> {
        self.take(b':');
        self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
        self.take(b':').then_some(Item::Other)
    }

    /// `%"…"` of printable ASCII, everything else as `%` and two lower-case hexadecimal digits.
    fn display_string(&mut self) -> Option<Item<'a>> {
        let mut inner = self.0.strip_prefix(b"%\"")?;
        loop {
            inner = match inner {
                [b'"', rest @ ..] => {
                    self.0 = rest;
                    return Some(Item::Other);
                }
                [b'%', b'0'..=b'9' | b'a'..=b'f', b'0'..=b'9' | b'a'..=b'f', rest @ ..] => rest,
                [b' '..=b'$' | b'&'..=b'~', rest @ ..] => rest,
                _ => return None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(field: &str) -> Option<Vec<(String, Item<'_>)>> {
        let members = dictionary(field.as_bytes())?;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        Some(members.into_iter().map(|(name, item)| (text(name), item)).collect())
    }

    #[test]
    fn members_are_read_with_their_types() {
        let members =
            of(r#"max-age=60;x=1, no-store, a=?0, b="c, \"d", e=tok, f=(1 "2";q);p, g=%"%c3%a4""#);
        let expected = [
            ("max-age", Item::Integer(60)),
            ("no-store", Item::Boolean(true)),
            ("a", Item::Boolean(false)),
            ("b", Item::String(br#"c, \"d"#)),
            ("e", Item::Token),
            ("f", Item::Other),
            ("g", Item::Other),
        ];
        assert_eq!(members.unwrap(), expected.map(|(name, item)| (name.to_owned(), item)));
    }

    #[test]
    fn the_last_of_two_members_counts() {
        let members = of("max-age=1, no-store, max-age=2").unwrap();
        assert_eq!(members.last(), Some(&("max-age".to_owned(), Item::Integer(2))));
        assert_eq!(members.len(), 2);
    }

    #[test]
    fn anything_malformed_spoils_the_whole() {
        for field in [
            "max-age=60,",
            "max-age=60 no-store",
            "Max-Age=60",
            "max-age=",
            "max-age =60",
            "max-age=60;",
            "a=\"b",
            "a=?2",
            "a=1.",
            "a=1234567890123456",
            "a=(1",
            "a=(1\"2\")",
            "a=:b",
            "=1",
            "a=\u{e4}",
            "a=%",
            "a=%b",
            "a=%\"b",
            "a=%\"%C3\"",
            "a=%\"%c\"",
        ] {
            assert_eq!(of(field), None, "{field}");
        }
        assert_eq!(of(" ").unwrap(), []);
    }
}
