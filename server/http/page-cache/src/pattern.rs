//! Patterns of names and paths with `*`.
//!
//! Called for every request with every pattern of an app, so patterns are split in advance.

/// Text in which each `*` stands for any bytes, none included. Case counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    /// The text before the first `*`.
    start: Box<str>,
    /// The text after it; `None` without a `*`.
    rest: Option<Box<str>>,
}

impl NamePattern {
    /// The pattern written as `text`.
    pub fn new(text: &str) -> Self {
        match text.split_once('*') {
            Some((start, rest)) => Self { start: start.into(), rest: Some(rest.into()) },
            None => Self { start: text.into(), rest: None },
        }
    }

    /// Whether the pattern matches the whole of `name`.
    pub fn matches(&self, name: &[u8]) -> bool {
        let Some(name) = name.strip_prefix(self.start.as_bytes()) else { return false };
        match self.rest.as_deref() {
            None => name.is_empty(),
            Some("") => true,
            Some(rest) => matches_rest(rest, name),
        }
    }
}

/// Whether `name` contains the pieces of `rest` in order, the last one at its end.
fn matches_rest(rest: &str, mut name: &[u8]) -> bool {
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        let Some(at) = memchr::memmem::find(name, piece.as_bytes()) else { return false };
        name = &name[at + piece.len()..];
    }
    name.ends_with(end.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_bytes() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a*", "ab", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("*", "", true),
            ("a*b", "ab", true),
            ("a*b", "axxb", true),
            ("aa*aa", "aaa", false),
            ("*a*b*", "xaxbx", true),
            ("*a*b*", "xbxax", false),
            ("a*b*c", "abbc", true),
            ("a*bc*c", "abc", false),
        ] {
            let matches = NamePattern::new(pattern).matches(name.as_bytes());
            assert_eq!(matches, expected, "{pattern} {name}");
        }
    }
}
