//! Comma-separated lists and the parts of their elements (RFC 9110 5.6). Pure; called by the parsers
//! of fields. Invariant: a comma or semicolon inside of a quoted string does not separate.

/// The trimmed elements of a list; empty ones are skipped (RFC 9110 5.6.1.2).
///
/// ```
/// use outboard_http_semantics::list;
///
/// assert!(list::elements(b"a, b=\"c, d\",").eq([&b"a"[..], b"b=\"c, d\""]));
/// ```
pub fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    split(list, b',').filter(|element| !element.is_empty())
}

/// The text between separators that stand outside of quoted strings, trimmed.
pub fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = unquoted(text, separator);
        rest = text.get(end + 1..);
        Some(text[..end].trim_ascii())
    })
}

/// The position of the first `wanted` outside of a quoted string, or the length of the text.
fn unquoted(text: &[u8], wanted: u8) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == wanted && !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// An element's name and its argument as written, if it has one.
pub fn name_and_argument(element: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', element) {
        Some(at) => (element[..at].trim_ascii_end(), Some(&element[at + 1..])),
        None => (element, None),
    }
}

/// Whether the text is a token (RFC 9110 5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    let is_tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_tchar)
}

/// The text of a token or quoted string; `None` for anything else, and for a quoted string with
/// escapes, which no argument of a cache directive needs.
pub fn argument_text(argument: &[u8]) -> Option<&[u8]> {
    match argument {
        [b'"', inner @ .., b'"'] => {
            (!inner.contains(&b'"') && !inner.contains(&b'\\')).then_some(inner)
        }
        token => is_token(token).then_some(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> Vec<&str> {
        elements(list.as_bytes()).map(|element| std::str::from_utf8(element).unwrap()).collect()
    }

    #[test]
    fn commas_in_quoted_strings_do_not_separate() {
        assert_eq!(of(r#"a, b="c, d" ,, e"#), ["a", r#"b="c, d""#, "e"]);
        assert_eq!(of(r#"a="\",", b"#), [r#"a="\",""#, "b"]);
        assert_eq!(of(r#"a="b, c"#), [r#"a="b, c"#]);
        assert_eq!(of(" , ,"), [""; 0]);
    }

    #[test]
    fn arguments_are_tokens_or_quoted_strings() {
        for (argument, expected) in [
            ("60", Some("60")),
            ("\"60\"", Some("60")),
            ("\"\"", Some("")),
            ("", None),
            ("\"60", None),
            ("\"", None),
            ("6 0", None),
            ("\"a\\\"b\"", None),
        ] {
            let text = argument_text(argument.as_bytes());
            assert_eq!(text, expected.map(str::as_bytes), "{argument}");
        }
    }
}
