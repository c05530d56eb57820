//! Heads of responses as HTTP/1.1 writes them.
//!
//! Used by the side of a bridge that tests see. Invariant: nothing of what came is lost.

use crate::protocol::capitalized;
use http::{HeaderMap, Response, StatusCode};
use std::fmt::Write as _;

/// A head, with further lines.
pub(super) fn text(head: &Response<()>, more: &str) -> String {
    let status = head.status();
    let mut text = format!("HTTP/1.1 {} {}\r\n", status.as_str(), phrase(status));
    push_fields(&mut text, head.headers());
    text.push_str(more);
    text.push_str("\r\n");
    text
}

/// The phrase that only HTTP/1.1 has; those of RFC 9110, where the library has older ones.
fn phrase(status: StatusCode) -> &'static str {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Content Too Large",
        _ => status.canonical_reason().unwrap_or_default(),
    }
}

/// Appends header lines or trailers.
pub(super) fn push_fields(text: &mut String, fields: &HeaderMap) {
    for (name, value) in fields {
        let value = String::from_utf8_lossy(value.as_bytes());
        let _ = write!(text, "{}: {value}\r\n", capitalized(name.as_str()));
    }
}
