//! The four forms of a request target (RFC 9112 3.2).
//!
//! Called by `request` once the request line is complete. Invariant: a target has exactly the form
//! that its method allows, and its parts are spans of the same buffer.

use crate::authority;
use crate::error::HeadError;
use crate::head::Span;
use crate::method::Method;

/// A request target in parts.
#[derive(Debug, Default)]
pub(crate) struct Target {
    /// As received.
    pub(crate) whole: Span,
    /// `None` in authority-form and asterisk-form; empty if absolute-form has no path.
    pub(crate) path: Option<Span>,
    /// Without the `?`.
    pub(crate) query: Option<Span>,
    /// Of absolute-form and authority-form.
    pub(crate) authority: Option<Span>,
}

impl Target {
    pub(crate) fn read(buf: &[u8], whole: Span, method: Method) -> Result<Self, HeadError> {
        let bytes = whole.of(buf);
        match bytes {
            _ if method == Method::Connect => read_authority_form(bytes, whole),
            [b'/', ..] => Ok(split_query(buf, whole, whole.start(), None)),
            b"*" if method == Method::Options => Ok(Self { whole, ..Self::default() }),
            b"*" => Err(HeadError::AsteriskFormNotAllowed),
            _ => read_absolute_form(buf, whole),
        }
    }
}

/// RFC 9112 3.2.3: `host:port`, only for CONNECT.
fn read_authority_form(bytes: &[u8], whole: Span) -> Result<Target, HeadError> {
    if !authority::is_valid_with_port(bytes) {
        return Err(HeadError::AuthorityFormRequired);
    }
    Ok(Target { whole, authority: Some(whole), ..Target::default() })
}

/// RFC 9112 3.2.2, for the schemes of RFC 9110 4.2. Userinfo is refused (RFC 9110 4.2.4).
fn read_absolute_form(buf: &[u8], whole: Span) -> Result<Target, HeadError> {
    let bytes = whole.of(buf);
    let colon = bytes.iter().position(|&byte| byte == b':').ok_or(HeadError::InvalidTarget)?;
    let (scheme, rest) = bytes.split_at(colon);
    let Some(rest) = rest.strip_prefix(b"://") else {
        return Err(HeadError::InvalidTarget);
    };
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(HeadError::InvalidAbsoluteForm);
    }
    let start = whole.start() + colon + 3;
    let len = rest.iter().position(|&byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    if !authority::is_valid(&rest[..len]) {
        return Err(HeadError::InvalidAbsoluteForm);
    }
    Ok(split_query(buf, whole, start + len, Some(Span::new(start, start + len))))
}

/// Splits the text from `path_start` at its first `?`.
fn split_query(buf: &[u8], whole: Span, path_start: usize, authority: Option<Span>) -> Target {
    let end = whole.end();
    let mark = memchr::memchr(b'?', &buf[path_start..end]).map(|at| path_start + at);
    Target {
        whole,
        path: Some(Span::new(path_start, mark.unwrap_or(end))),
        query: mark.map(|mark| Span::new(mark + 1, end)),
        authority,
    }
}
