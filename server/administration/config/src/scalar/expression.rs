//! Regular expressions of rewrite rules.

use super::kind::{Fault, Scalar, Written};
use regex::bytes::{Regex, RegexBuilder};

/// A compiled regular expression over the bytes of a decoded URL path.
#[derive(Clone, Debug)]
pub(crate) struct Expression(pub(crate) Regex);

/// More than any rule needs; bounds the memory that a hostile file can use.
pub(crate) const REGEX_MAX_BYTES: usize = 1 << 20;

impl Scalar for Expression {
    const NAME: &'static str = "regular expression";
    const EXPECTED: &'static str = "a regular expression such as \"^/old/(.*)$\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        match RegexBuilder::new(text).size_limit(REGEX_MAX_BYTES).build() {
            Ok(regex) => Ok(Expression(regex)),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err(Fault::new("the regular expression is too large"))
            }
            Err(error) => {
                // The library marks the position over several lines; the last line is the reason.
                let drawn = error.to_string();
                let reason = drawn.lines().last().unwrap_or_default();
                let reason = reason.strip_prefix("error: ").unwrap_or(reason);
                let hint = match (reason.contains("look-"), reason.contains("backreference")) {
                    (true, _) => "let an earlier rule match the paths that this one leaves out",
                    (_, true) => "write a rule for each text that it can stand for",
                    _ => "in TOML, single quotes ('…') preserve backslashes",
                };
                Err(Fault::new(format!("not a regular expression: {reason}")).hint(hint))
            }
        }
    }

    fn write(&self) -> String {
        self.0.as_str().to_owned()
    }
}
