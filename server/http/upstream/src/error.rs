//! Why a request to an upstream has no complete response.
//!
//! Returned by every operation of this crate. The kind is for programs (status codes, retries,
//! counters), the message for people; it names the host and never a credential.

use std::fmt;
use std::sync::Arc;

/// A request failed. Errors are equal if kind and message are.
#[derive(Debug, Clone)]
pub struct Error {
    /// Who failed, and how.
    pub kind: Kind,
    /// What happened, in a sentence without a full stop.
    pub message: String,
    /// Whether nothing of the request was sent.
    is_unsent: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.message) == (other.kind, &other.message)
    }
}

impl Eq for Error {}

/// Who failed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The call itself is wrong: URL, method, header.
    BadCall,
    /// The name has no address.
    Resolve,
    /// No connection was established.
    Connect,
    /// TLS failed.
    Tls,
    /// The time-out expired.
    Timeout,
    /// The peer closed early or violated HTTP.
    Protocol,
    /// Too many redirects.
    Redirects,
    /// The response is larger than allowed.
    TooLarge,
    /// Too many requests to this host are under way.
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

    /// A stable name for logs, metrics and applications.
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
    /// An error of this kind, without a cause.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), is_unsent: false, source: None }
    }

    /// The same error of a request that was not sent.
    pub(crate) fn unsent(self) -> Self {
        Self { is_unsent: true, ..self }
    }

    /// Whether nothing of the request was sent, so that it may be sent to another server.
    pub fn is_unsent(&self) -> bool {
        self.is_unsent
    }

    /// The same error with its cause.
    pub(crate) fn because(self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(cause)), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;
    use std::io;

    #[test]
    fn an_error_names_its_cause() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = Error::new(Kind::Connect, "no connection").because(refused);
        assert!(error.source().is_some_and(|cause| cause.is::<io::Error>()));
        assert_eq!(error, Error::new(Kind::Connect, "no connection"));
    }
}
