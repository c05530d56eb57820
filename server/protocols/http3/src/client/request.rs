//! Requests as bytes (RFC 9114 4.3.1).
//!
//! Called by the owner of a connection. Invariant: the bytes do not depend on those before, so that they
//! can be sent again and again.

use crate::frame::{frame_type, write_frame_head};
use outboard_header_compression::qpack::{Encoder, SectionWriter};

/// The pseudo-header fields of a request other than CONNECT.
#[derive(Debug, Clone, Copy)]
pub struct RequestLine<'a> {
    /// `:method`.
    pub method: &'a [u8],
    /// `:scheme`.
    pub scheme: &'a [u8],
    /// `:authority`.
    pub authority: &'a [u8],
    /// `:path`.
    pub path: &'a [u8],
}

/// Appends a request with the fields that `write` adds. The stream ends after it.
///
/// Names and values were validated by the caller.
pub fn write_request(
    out: &mut Vec<u8>,
    line: &RequestLine<'_>,
    write: impl FnOnce(&mut SectionWriter<'_>),
    body: &[u8],
) {
    let (mut encoder, mut section) = (Encoder::new(), Vec::new());
    let mut fields = encoder.begin(&mut section);
    fields.field(b":method", line.method);
    fields.field(b":scheme", line.scheme);
    fields.field(b":authority", line.authority);
    fields.field(b":path", line.path);
    write(&mut fields);
    write_frame_head(out, frame_type::HEADERS, section.len() as u64);
    out.extend_from_slice(&section);
    if !body.is_empty() {
        write_frame_head(out, frame_type::DATA, body.len() as u64);
        out.extend_from_slice(body);
    }
}
