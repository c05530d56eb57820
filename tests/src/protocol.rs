//! The protocol by which the tests reach the server: the parameter of a whole run.
//!
//! Read by whatever starts a server for a test. Invariant: it is the same for all tests of a program.

use std::sync::LazyLock;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, which the tests write themselves.
    Http1,
    /// HTTP/2 with prior knowledge (RFC 9113, section 3.3), through a bridge.
    Http2,
    /// HTTP/3, through a bridge; the server's listener has a certificate.
    Http3,
}

impl Protocol {
    /// The one that `OUTBOARD_E2E_PROTOCOL` names: `http1`, `http2` or `http3`.
    pub fn of_run() -> Protocol {
        static CHOSEN: LazyLock<Protocol> = LazyLock::new(|| {
            let name = std::env::var("OUTBOARD_E2E_PROTOCOL").unwrap_or_default();
            match name.as_str() {
                "" | "http1" => Protocol::Http1,
                "http2" => Protocol::Http2,
                "http3" => Protocol::Http3,
                other => panic!("OUTBOARD_E2E_PROTOCOL is http1, http2 or http3, not {other}"),
            }
        });
        *CHOSEN
    }
}
