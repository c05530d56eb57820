//! Writes ini values as the text that the engine reads after its ini files.
//!
//! Called by start-up. Invariant: a value has its meaning in `php.ini`; text that could end its
//! line or its quotes is quoted or rejected.

use std::collections::BTreeMap;

/// A setting that cannot be written in ini syntax.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unwritable {
    pub(crate) name: String,
    pub(crate) why: &'static str,
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the ini setting '{}' {}", self.name, self.why)
    }
}

/// One `name=value` line per setting.
pub(crate) fn write(
    settings: &BTreeMap<String, String>,
    out: &mut String,
) -> Result<(), Unwritable> {
    for (name, value) in settings {
        check(name, value)?;
        out.push_str(name);
        out.push('=');
        write_value(value, out);
        out.push('\n');
    }
    Ok(())
}

fn check(name: &str, value: &str) -> Result<(), Unwritable> {
    let refuse = |why| Err(Unwritable { name: name.to_owned(), why });
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || !name.chars().all(plain) {
        return refuse("has an invalid name");
    }
    if value.contains(['\0', '\n', '\r']) {
        return refuse("has a value with a line break or a NUL");
    }
    Ok(())
}

/// Words and numbers stay bare, so that `On`, `128M` and `E_ALL & ~E_DEPRECATED` have their
/// meaning. Single quotes are literal; a value that contains them gets double quotes.
fn write_value(value: &str, out: &mut String) {
    let bare =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '&' | '|' | '~' | '^');
    if !value.is_empty() && value.trim() == value && value.chars().all(bare) {
        out.push_str(value);
    } else if value.contains('\'') {
        out.push('"');
        for c in value.chars() {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
    } else {
        out.push('\'');
        out.push_str(value);
        out.push('\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, value: &str) -> Result<String, Unwritable> {
        let mut out = String::new();
        write(&BTreeMap::from([(name.to_owned(), value.to_owned())]), &mut out).map(|()| out)
    }

    #[test]
    fn words_and_expressions_stay_bare() {
        assert_eq!(written("memory_limit", "128M").unwrap(), "memory_limit=128M\n");
        let expression = "E_ALL & ~E_DEPRECATED";
        assert_eq!(
            written("error_reporting", expression).unwrap(),
            "error_reporting=E_ALL & ~E_DEPRECATED\n"
        );
    }

    #[test]
    fn everything_else_is_quoted() {
        assert_eq!(written("a", "").unwrap(), "a=''\n");
        assert_eq!(written("a", "/tmp;x=${HOME}").unwrap(), "a='/tmp;x=${HOME}'\n");
        assert_eq!(written("a", "it's \"so\" \\").unwrap(), "a=\"it's \\\"so\\\" \\\\\"\n");
    }

    #[test]
    fn what_could_smuggle_in_another_line_is_refused() {
        assert!(written("a", "1\nextension=evil.so").is_err());
        assert!(written("a]\nb", "1").is_err());
        assert!(written("", "1").is_err());
    }
}
