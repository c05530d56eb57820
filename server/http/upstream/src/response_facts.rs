//! [`ResponseFacts`]: the head of a response over either protocol.
//!
//! Created by the connection that received it. Invariant: fields of the connection, and those that a
//! decoded body no longer matches, are not passed on.

use crate::decode::Decoder;
use crate::request::{Request, is_nominated, is_of_the_connection};

/// See the module.
#[derive(Debug)]
pub(crate) struct ResponseFacts {
    pub(crate) status: u16,
    pub(crate) http_version: u8,
    pub(crate) headers: Vec<u8>,
    pub(crate) decoder: Option<Decoder>,
}

impl ResponseFacts {
    /// Selects the fields of a response to `request`.
    pub(crate) fn new<'h>(
        request: &Request,
        status: u16,
        http_version: u8,
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone,
    ) -> Self {
        let named = |wanted: &[u8]| {
            let mut found = fields.clone().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.next().filter(|_| found.next().is_none()).map(|(_, value)| value)
        };
        let has_body = request.method != b"HEAD" && !matches!(status, 204 | 304);
        let decoder = (has_body && request.decodes())
            .then(|| named(b"content-encoding"))
            .flatten()
            .and_then(|coding| Decoder::of(coding, request.max_body_bytes));
        let own_fields =
            fields.clone().filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"));
        let connection: Vec<&[u8]> = own_fields.map(|(_, value)| value).collect();
        let mut headers = Vec::with_capacity(256);
        for (name, value) in fields {
            if connection.iter().any(|nominated| is_nominated(nominated, name)) {
                continue;
            }
            let is_length = name.eq_ignore_ascii_case(b"content-length");
            let untrue =
                decoder.is_some() && (is_length || name.eq_ignore_ascii_case(b"content-encoding"));
            if untrue || (is_of_the_connection(name) && !is_length) {
                continue;
            }
            headers.extend_from_slice(name);
            headers.extend_from_slice(b": ");
            headers.extend_from_slice(value);
            headers.push(b'\n');
        }
        Self { status, http_version, headers, decoder }
    }
}
