//! [`Template`]: text with placeholders that are filled for each request.
//!
//! `{seq}` is the number of the request, which is unique in the run; `{key}` one of the plan's
//! keys, drawn at random; `{new}` a new key; `{latest}` one of the keys that exist by now, the
//! youngest most often with Zipf's law; `{rand}` 16 random hexadecimal digits; `{rand:N}` N random
//! letters and digits; `{name}` a value of the user: a column of a data feed or a captured value.
//! `{{` and `}}` are braces. A text without placeholders is rendered once.

use crate::keys::Keys;
use crate::random::Random;
use outboard_http1::write_u64;
use std::fmt;

/// Letters of generated text; 64 of them, so that six bits select one.
const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
/// The limit of generated text.
const RAND_BYTES_MAX: usize = 1 << 24;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Seq,
    Key,
    New,
    Latest,
    Hex,
    Letters(usize),
    Value { name: String, is_encoded: bool },
}

/// Why a template is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidTemplate {
    text: String,
    why: &'static str,
}

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\": {}; a brace that is meant is written twice", self.text, self.why)
    }
}

impl std::error::Error for InvalidTemplate {}

/// A parsed template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template(Vec<Part>);

/// The sources of values for a rendering.
pub(crate) struct Source<'a> {
    pub(crate) seq: u64,
    pub(crate) keys: &'a mut Keys,
    pub(crate) random: &'a mut Random,
    pub(crate) values: &'a [(String, String)],
}

impl Template {
    /// Literal text, including braces.
    pub fn literal(text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::default() } else { Self(vec![Part::Text(text)]) }
    }

    /// Parses the placeholders of `text`.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let fail = |why| InvalidTemplate { text: text.to_owned(), why };
        let mut parts = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.extend_from_slice(before.as_bytes());
            if from.starts_with("{{") || from.starts_with("}}") {
                plain.push(from.as_bytes()[0]);
                rest = &from[2..];
                continue;
            }
            let inner = from.strip_prefix('{').ok_or_else(|| fail("a } without its {"))?;
            let end = inner.find('}').ok_or_else(|| fail("a { without its }"))?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::named(&inner[..end]).ok_or_else(|| fail("no such place"))?);
            rest = &inner[end + 1..];
        }
        plain.extend_from_slice(rest.as_bytes());
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }

    /// Whether all renderings are equal.
    pub fn is_fixed(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The names of the user's values that it needs.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Value { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// The template with the user's values percent-encoded.
    #[must_use]
    pub fn with_encoded_values(mut self) -> Self {
        for part in &mut self.0 {
            if let Part::Value { is_encoded, .. } = part {
                *is_encoded = true;
            }
        }
        self
    }

    /// The template with the text between the placeholders percent-encoded.
    #[must_use]
    pub fn with_encoded_text(mut self) -> Self {
        for part in &mut self.0 {
            if let Part::Text(text) = part {
                let mut encoded = Vec::new();
                push_encoded(&mut encoded, text);
                *text = encoded;
            }
        }
        self
    }

    /// Appends another template.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn render(&self, source: &mut Source<'_>, out: &mut Vec<u8>) {
        for part in &self.0 {
            part.render(source, out);
        }
    }
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        match name {
            "seq" => Some(Part::Seq),
            "key" => Some(Part::Key),
            "new" => Some(Part::New),
            "latest" => Some(Part::Latest),
            "rand" => Some(Part::Hex),
            _ => match name.strip_prefix("rand:") {
                Some(count) => {
                    let count = count.parse().ok().filter(|&count| count <= RAND_BYTES_MAX)?;
                    Some(Part::Letters(count))
                }
                None => {
                    is_name(name).then(|| Part::Value { name: name.to_owned(), is_encoded: false })
                }
            },
        }
    }

    fn render(&self, source: &mut Source<'_>, out: &mut Vec<u8>) {
        match self {
            Part::Text(text) => out.extend_from_slice(text),
            Part::Seq => write_u64(out, source.seq),
            Part::Key => write_u64(out, source.keys.known(source.random)),
            Part::New => write_u64(out, source.keys.add()),
            Part::Latest => write_u64(out, source.keys.latest(source.random)),
            Part::Hex => push_letters(out, source.random, 16, 4),
            Part::Letters(count) => push_letters(out, source.random, *count, 6),
            Part::Value { name, is_encoded } => {
                let known = source.values.iter().find(|(known, _)| known == name);
                let value = known.map_or(b"".as_slice(), |(_, value)| value.as_bytes());
                if *is_encoded { push_encoded(out, value) } else { out.extend_from_slice(value) }
            }
        }
    }
}

/// RFC 3986 2.1: everything but unreserved characters.
fn push_encoded(out: &mut Vec<u8>, text: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ => out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
}

/// `count` letters of `bits` random bits each.
fn push_letters(out: &mut Vec<u8>, random: &mut Random, count: usize, bits: u32) {
    let mut left = count;
    while left > 0 {
        let mut number = random.next();
        for _ in 0..left.min((64 / bits) as usize) {
            out.push(LETTERS[(number & ((1 << bits) - 1)) as usize]);
            number >>= bits;
            left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str) -> String {
        let values = [("name".to_owned(), "Ada".to_owned())];
        let mut random = Random::new(5);
        let mut source =
            Source { seq: 17, keys: &mut Keys::of(10), random: &mut random, values: &values };
        let mut out = Vec::new();
        Template::parse(text).expect("it is a template").render(&mut source, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn placeholders_are_filled_and_double_braces_are_braces() {
        assert_eq!(render("/u/{name}/{seq}?{{x}}{unknown}."), "/u/Ada/17?{x}.");
        let key: u64 = render("{key}").parse().expect("a key is a number");
        assert!(key < 10);
        assert_eq!(render("{new} {new}"), "10 11");
    }

    #[test]
    fn generated_text_has_the_requested_length() {
        assert_eq!(render("{rand}").len(), 16);
        assert!(render("{rand}").bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(render("{rand:100}").len(), 100);
        assert_eq!(render("{rand:0}"), "");
    }

    #[test]
    fn only_a_text_without_places_is_fixed() {
        assert!(Template::parse("/{{a}}").expect("valid").is_fixed());
        assert!(!Template::parse("/{seq}").expect("valid").is_fixed());
        let template = Template::parse("{user}{seq}{token}").expect("valid");
        assert_eq!(template.values().collect::<Vec<_>>(), ["user", "token"]);
    }

    #[test]
    fn an_invalid_template_says_why() {
        for (text, why) in [("{a", "without its }"), ("a}", "without its {"), ("{a b}", "no such")]
        {
            let error = Template::parse(text).expect_err("it is refused").to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(Template::parse("{rand:99999999999}").is_err());
    }
}
