//! Names and paths with `*` in them.

/// Text in which each `*` stands for any bytes, none included. Case counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Box<str>);

impl NamePattern {
    /// The pattern written as `text`.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether all of `name` is meant.
    pub fn matches(&self, name: &[u8]) -> bool {
        let Some((start, rest)) = self.0.split_once('*') else {
            return name == self.0.as_bytes();
        };
        let Some(mut name) = name.strip_prefix(start.as_bytes()) else { return false };
        let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
            let Some(at) = memchr::memmem::find(name, piece.as_bytes()) else { return false };
            name = &name[at + piece.len()..];
        }
        name.ends_with(end.as_bytes())
    }
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
