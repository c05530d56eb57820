//! Patterns of URL paths, as shells and `.gitignore` write them.
//!
//! `*` and `?` stay within one segment, `**` crosses segments. A pattern that starts with `/`
//! starts at the app's prefix; any other matches the end of the path, from a segment on. A
//! pattern that ends in `/` means everything below that directory.

use super::kind::{Fault, Scalar, Written};
use regex::bytes::{Regex, RegexBuilder};

/// A pattern of URL paths such as `*.sql` or `/vendor/`.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: String,
    regex: Regex,
}

/// The end of a path, the extension of a compressed copy, or a path below.
const COVERED_END: &str = r"(?:\.(?:gz|br|zst|bz2|xz))?(?:/|\z)";

impl PathPattern {
    /// Whether the pattern matches a decoded path with a leading `/`, without the app's prefix.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.regex.is_match(path)
    }

    /// A regular expression that also matches everything below the pattern and compressed
    /// copies.
    pub(crate) fn covering(&self) -> String {
        translate(&self.text) + if self.text.ends_with('/') { "" } else { COVERED_END }
    }

    /// The same, and of a pattern that ends in `/` the directory itself.
    pub(crate) fn covering_with_directory(&self) -> String {
        translate(self.text.trim_end_matches('/')) + COVERED_END
    }

    /// A regular expression that matches everything below the directory.
    pub(crate) fn below(&self) -> String {
        translate(self.text.trim_end_matches('/')) + "/"
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Scalar for PathPattern {
    const NAME: &'static str = "path pattern";
    const EXPECTED: &'static str = "a path pattern such as \"*.sql\", \"/vendor/\" or \"/api/**\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        if text.is_empty() {
            return Err(Self::unexpected());
        }
        let end = if text.ends_with('/') { "" } else { r"\z" };
        let regex = RegexBuilder::new(&(translate(text) + end))
            .unicode(false)
            .size_limit(super::expression::REGEX_MAX_BYTES)
            .build()
            .map_err(|_| Fault::new("the pattern is too long"))?;
        Ok(PathPattern { text: text.to_owned(), regex })
    }

    fn write(&self) -> String {
        self.text.clone()
    }
}

/// Everything but the end anchor. Wildcards match bytes, not characters.
fn translate(pattern: &str) -> String {
    let mut regex = String::from(if pattern.starts_with('/') { r"\A" } else { r"(?:\A|/)" });
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let (token, piece) = if rest.starts_with("**") {
            ("**", "(?s-u:.)*".to_owned())
        } else {
            let token = &rest[..c.len_utf8()];
            match c {
                '*' => (token, "(?-u:[^/])*".to_owned()),
                '?' => (token, "(?-u:[^/])".to_owned()),
                _ => (token, regex::escape(token)),
            }
        };
        regex.push_str(&piece);
        rest = &rest[token.len()..];
    }
    regex
}
