//! [`AccessEntry`]: what the access log says of a request.

use std::fmt;

/// The facts of a request and its response.
#[derive(Debug, Clone, Copy)]
pub struct AccessEntry<'a> {
    /// The client's address, or `unix:`.
    pub client: &'a str,
    /// Method and target as received.
    pub method: &'a [u8],
    /// Request target as received.
    pub target: &'a [u8],
    /// `HTTP/1.1`.
    pub protocol: &'a str,
    /// Status of the response.
    pub status: u16,
    /// Body bytes sent.
    pub body_bytes: u64,
    /// From the first byte of the request to the last of the response.
    pub duration_us: u64,
    /// All header fields.
    pub headers: Headers<'a>,
    /// `Referer`.
    pub referer: &'a [u8],
    /// `User-Agent`.
    pub user_agent: &'a [u8],
    /// Request id.
    pub request: u64,
    /// App name, empty when none was found.
    pub app: &'a str,
    /// Its trace; `None` if it is not traced.
    pub trace: Option<TraceEntry>,
    /// The TLS session of the connection; `None` without TLS.
    pub tls: Option<TlsEntry<'a>>,
    /// The server of an upstream that has responded, or was tried last; `None` without one.
    pub upstream: Option<&'a str>,
}

/// The header fields of a request, by name.
#[derive(Clone, Copy)]
pub struct Headers<'a>(pub &'a dyn Fn(&[u8]) -> Option<&'a [u8]>);

impl<'a> Headers<'a> {
    /// No fields.
    pub const NONE: Self = Self(&|_| None);

    /// The value of the first field with this name; empty without one.
    pub fn get(self, name: &[u8]) -> &'a [u8] {
        (self.0)(name).unwrap_or_default()
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Headers")
    }
}

/// The trace of a request.
#[derive(Debug, Clone, Copy)]
pub struct TraceEntry {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The request's span.
    pub span_id: [u8; 8],
}

/// The facts of a TLS session.
#[derive(Debug, Clone, Copy)]
pub struct TlsEntry<'a> {
    /// `TLSv1.3`.
    pub protocol: &'a str,
    /// The cipher suite.
    pub cipher: &'a str,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(crate) const ENTRY: AccessEntry<'_> = AccessEntry {
    client: "192.0.2.1",
    method: b"GET",
    target: b"/a?b=\"c\"",
    protocol: "HTTP/1.1",
    status: 200,
    body_bytes: 5,
    duration_us: 1_234_567,
    headers: Headers::NONE,
    referer: b"",
    user_agent: b"curl/8",
    request: 1,
    app: "site",
    trace: None,
    tls: None,
    upstream: None,
};
