//! [`RequestHead`]: the control data and fields of a request by HTTP/2 or HTTP/3 (RFC 9113 8.3.1, RFC 9114
//! 4.3.1).
//!
//! Written by `head_reader`, read by the server. Invariant: a head that was accepted has one meaning: one
//! method, one path, one authority, one length, one Cookie field.

use crate::fields::{Fields, Span};
use crate::priority::Priority;

/// The head of a request, or the trailers of one. Its memory is used again.
#[derive(Debug, Clone, Default)]
pub struct RequestHead {
    pub(crate) fields: Fields,
    pub(crate) method: Option<Span>,
    pub(crate) scheme: Option<Span>,
    pub(crate) authority: Option<Span>,
    pub(crate) path: Option<Span>,
    pub(crate) protocol: Option<Span>,
    pub(crate) content_length: Option<u64>,
    pub(crate) priority: Option<Priority>,
}

impl RequestHead {
    /// A head without memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// The method.
    pub fn method(&self) -> &[u8] {
        self.text(self.method)
    }

    /// The scheme; empty for CONNECT.
    pub fn scheme(&self) -> &[u8] {
        self.text(self.scheme)
    }

    /// `:authority`, or the Host field if it is absent; empty if both are.
    ///
    /// Only visible ASCII without userinfo; the server checks that it is a host and a port.
    pub fn authority(&self) -> &[u8] {
        self.text(self.authority)
    }

    /// The path and query, beginning with `/`, or `*` for OPTIONS; empty for CONNECT.
    pub fn path(&self) -> &[u8] {
        self.text(self.path)
    }

    /// The protocol of an extended CONNECT (RFC 8441 4, RFC 9220 3).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.protocol.map(|span| self.fields.stored(span))
    }

    /// The fields without Host, and with one Cookie (RFC 9113 8.2.3).
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The length that the request declares.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// The priority that the request declares (RFC 9218 5).
    pub fn priority(&self) -> Option<Priority> {
        self.priority
    }

    /// Whether this is CONNECT, extended or not.
    pub fn is_connect(&self) -> bool {
        self.method() == b"CONNECT"
    }

    /// The bytes of memory.
    pub fn capacity_bytes(&self) -> usize {
        self.fields.capacity_bytes()
    }

    /// Removes everything except the memory.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Self { fields, ..Self::default() };
    }

    fn text(&self, span: Option<Span>) -> &[u8] {
        span.map_or(b"", |span| self.fields.stored(span))
    }
}
