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

    /// Header lines of a response as the tests receive them: names have no case of their own in versions
    /// with a bridge.
    pub fn lines(self, lines: &str) -> String {
        if self == Protocol::Http1 {
            return lines.to_owned();
        }
        let line = |line: &str| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", capitalized(&name.to_ascii_lowercase())),
            None => line.to_owned(),
        };
        lines.split("\r\n").map(line).collect::<Vec<_>>().join("\r\n")
    }

    /// Its number, as in Via (RFC 9110, section 7.6.3).
    pub fn version(self) -> &'static str {
        match self {
            Protocol::Http1 => "1.1",
            Protocol::Http2 => "2.0",
            Protocol::Http3 => "3.0",
        }
    }

    /// Its scheme in a run: a bridge reaches only HTTP/3 by TLS.
    pub fn scheme(self) -> &'static str {
        if self == Protocol::Http3 { "https" } else { "http" }
    }
}

/// `content-type` as HTTP/1.1 servers write it.
pub(crate) fn capitalized(name: &str) -> String {
    if name == "etag" {
        return "ETag".to_owned();
    }
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}
