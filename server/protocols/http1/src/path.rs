//! [`normalize_path`]: converts a received path to the path of a file or route.
//!
//! Called by the gateway once per request, before routing. Invariant: the result starts with `/`
//! and has no `.`, `..` or empty segment and no NUL, so it stays below any root it is joined to.

use std::fmt;

/// Why a path is refused with 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathError {
    /// The path does not start with `/`.
    NotAbsolute,
    /// A `%` without two hexadecimal digits after it.
    InvalidPercent,
    /// A NUL byte, plain or as `%00`.
    NulByte,
    /// `..` above the root.
    AboveRoot,
}

impl PathError {
    /// The status code of the response.
    pub fn status(self) -> u16 {
        400
    }

    /// A stable name in snake case, for logs and counters.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotAbsolute => "path_not_absolute",
            Self::InvalidPercent => "path_invalid_percent",
            Self::NulByte => "path_nul_byte",
            Self::AboveRoot => "path_above_root",
        }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for PathError {}

/// Decodes and normalizes the path `raw` of a request target into `out`, which is cleared first.
///
/// The result is that of nginx, which applications expect: percent-encoding is decoded once and first,
/// so `%2F` separates segments and `%2e%2e` is a dot segment; repeated slashes are merged; dot segments
/// are removed (RFC 3986 5.2.4); a trailing slash stays. `..` above the root is an error: clients
/// resolve `..` themselves, so only an attacker sends it.
///
/// ```
/// let mut path = Vec::new();
/// outboard_http1::normalize_path(b"/a//b/%2e%2e/c%20d", &mut path)?;
/// assert_eq!(path, b"/a/c d");
/// # Ok::<(), outboard_http1::PathError>(())
/// ```
pub fn normalize_path(raw: &[u8], out: &mut Vec<u8>) -> Result<(), PathError> {
    out.clear();
    if raw.first() != Some(&b'/') {
        return Err(PathError::NotAbsolute);
    }
    out.reserve(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let decoded = match byte {
            b'%' => decode_percent(raw, at + 1)?,
            _ => byte,
        };
        at += if byte == b'%' { 3 } else { 1 };
        match decoded {
            0 => return Err(PathError::NulByte),
            b'/' => {
                close_segment(out)?;
                if out.last() != Some(&b'/') {
                    out.push(b'/');
                }
            }
            _ => out.push(decoded),
        }
    }
    close_segment(out)
}

/// Whether a decoded segment of a path is `..`. [`normalize_path`] removes it; where an application has put a
/// name of its user into a path, it has to be refused, as nginx does (`ngx_http_parse_unsafe_uri`).
pub fn has_parent_segment(raw: &[u8]) -> bool {
    let mut at = 0;
    let mut decoded = Vec::with_capacity(raw.len());
    while let Some(&byte) = raw.get(at) {
        let escaped = (byte == b'%').then(|| decode_percent(raw, at + 1).ok()).flatten();
        at += if escaped.is_some() { 3 } else { 1 };
        decoded.push(escaped.unwrap_or(byte));
    }
    decoded.split(|&byte| byte == b'/').any(|segment| segment == b"..")
}

/// Resolves the last segment of `out` if it is a dot segment; the rest then ends with `/`.
fn close_segment(out: &mut Vec<u8>) -> Result<(), PathError> {
    if out.ends_with(b"/.") {
        out.pop();
    } else if out.ends_with(b"/..") {
        out.truncate(out.len() - 3);
        let parent = out.iter().rposition(|&byte| byte == b'/').ok_or(PathError::AboveRoot)?;
        out.truncate(parent + 1);
    }
    Ok(())
}

fn decode_percent(raw: &[u8], at: usize) -> Result<u8, PathError> {
    let digit = |at: usize| {
        let byte = raw.get(at).copied().ok_or(PathError::InvalidPercent)?;
        char::from(byte).to_digit(16).ok_or(PathError::InvalidPercent)
    };
    Ok((digit(at)? << 4 | digit(at + 1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(raw: &str) -> Result<String, PathError> {
        let mut out = b"left over".to_vec();
        normalize_path(raw.as_bytes(), &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn a_parent_segment_is_found_in_every_spelling() {
        for raw in ["/..", "/a/../b", "/a/%2e%2e/b", "/a/..%2Fb", "/a/.%2E", "..", "/%/../b"] {
            assert!(has_parent_segment(raw.as_bytes()), "{raw}");
        }
        for raw in ["/", "/a/.../b", "/a..b/..c", "/%252e%252e/a", "/a/./b", "/a%"] {
            assert!(!has_parent_segment(raw.as_bytes()), "{raw}");
        }
    }

    #[test]
    fn paths_are_decoded_and_dot_segments_removed() {
        for (raw, path) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/b/", "/a/b/"),
            ("//a///b//", "/a/b/"),
            ("/./a/./b", "/a/b"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/a/../b", "/b"),
            ("/a/b/../../c", "/c"),
            // Slashes are merged before dot segments are removed.
            ("/a//../b", "/b"),
            // RFC 3986 5.2.4's own example.
            ("/a/b/c/./../../g", "/a/g"),
            // These are not dot segments.
            ("/.a/..b/c./d../...", "/.a/..b/c./d../..."),
            // Encoded separators and dots are decoded once.
            ("/a%2Fb", "/a/b"),
            ("/a/%2e%2E/b", "/b"),
            ("/a%2f..%2fb", "/b"),
            ("/a%252e%252e/b", "/a%2e%2e/b"),
            ("/%41%20%3F%23%25", "/A ?#%"),
            ("/a\\..\\b", "/a\\..\\b"),
            ("/a;x=../b", "/a;x=../b"),
        ] {
            assert_eq!(normalized(raw).as_deref(), Ok(path), "{raw}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_pass() {
        let mut out = Vec::new();
        assert_eq!(normalize_path(b"/%ff\xfe", &mut out), Ok(()));
        assert_eq!(out, b"/\xff\xfe");
    }

    #[test]
    fn paths_out_of_the_root_and_malformed_ones_are_rejected() {
        for (raw, error) in [
            ("", PathError::NotAbsolute),
            ("*", PathError::NotAbsolute),
            ("a/b", PathError::NotAbsolute),
            ("%2Fa", PathError::NotAbsolute),
            ("/..", PathError::AboveRoot),
            ("/../a", PathError::AboveRoot),
            ("/a/../..", PathError::AboveRoot),
            ("/a/../../b", PathError::AboveRoot),
            ("//..", PathError::AboveRoot),
            ("/%2e%2e/%2e%2e/etc/passwd", PathError::AboveRoot),
            ("/..%2f..%2fetc", PathError::AboveRoot),
            ("/%00", PathError::NulByte),
            ("/a.php%00.jpg", PathError::NulByte),
            ("/a\0", PathError::NulByte),
            ("/%", PathError::InvalidPercent),
            ("/%4", PathError::InvalidPercent),
            ("/%4g", PathError::InvalidPercent),
            ("/%-1", PathError::InvalidPercent),
            ("/%+1", PathError::InvalidPercent),
            ("/%u0041", PathError::InvalidPercent),
        ] {
            assert_eq!(normalized(raw), Err(error), "{raw}");
        }
    }
}
