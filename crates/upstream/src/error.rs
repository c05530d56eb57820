//! Why a request to an upstream has no whole answer.
//!
//! Given by every operation of this crate. The kind is for programs (status codes, retries,
//! counters), the message for people; it names the host and never a credential.

use std::fmt;

/// A request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Who failed, and how.
    pub kind: Kind,
    /// What happened, in a sentence without a full stop.
    pub message: String,
}

/// Who failed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The call itself is wrong: URL, method, header.
    BadCall,
    /// The name has no address.
    Resolve,
    /// No connection came about.
    Connect,
    /// TLS failed.
    Tls,
    /// It took too long.
    Timeout,
    /// The peer closed early or broke HTTP.
    Protocol,
    /// Too many redirects.
    Redirects,
    /// The answer is larger than allowed.
    TooLarge,
    /// Too many requests for this host already.
    Busy,
}

impl Kind {
    /// Every kind, for tables and counters.
    pub const ALL: [Self; 9] = [
        Self::BadCall,
        Self::Resolve,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Protocol,
        Self::Redirects,
        Self::TooLarge,
        Self::Busy,
    ];

    /// A stable word for logs, metrics and applications.
    pub fn word(self) -> &'static str {
        match self {
            Self::BadCall => "bad_call",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Redirects => "redirects",
            Self::TooLarge => "too_large",
            Self::Busy => "busy",
        }
    }
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
