//! [`MalformedFields`]: why a message is malformed (RFC 9113 8.1.1, RFC 9114 4.1.2).
//!
//! Returned by `head_reader` for requests, by `http3` for responses. Invariant: one variant per rule.

use std::fmt;

/// Why the fields of a message are malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MalformedFields {
    /// A name is not a token in lower case (RFC 9113 8.2.1, RFC 9114 4.2).
    InvalidName,
    /// A value contains a control byte, or begins or ends with white space (RFC 9110 5.5).
    InvalidValue,
    /// A field of one connection (RFC 9113 8.2.2, RFC 9114 4.2).
    ConnectionField,
    /// A pseudo-header field that is unknown, or not allowed here (RFC 9113 8.3, RFC 9114 4.3).
    UnexpectedPseudoField,
    /// A pseudo-header field after another field (RFC 9113 8.3, RFC 9114 4.3).
    LatePseudoField,
    /// A field that occurs twice: a pseudo-header field, Host or Content-Length.
    DuplicateField,
    /// A required pseudo-header field is missing (RFC 9113 8.3.1, RFC 9114 4.3.1).
    MissingPseudoField,
    /// `:method` is not a token.
    InvalidMethod,
    /// `:scheme` is not a scheme (RFC 3986 3.1).
    InvalidScheme,
    /// `:path` is not a path, or contains a fragment.
    InvalidPath,
    /// `:authority` or Host is missing or invalid, or they differ (RFC 9113 8.3.1, RFC 9114 4.3.1).
    InvalidAuthority,
    /// `:protocol` is not a token (RFC 8441 4).
    InvalidProtocol,
    /// Content-Length is not a number.
    InvalidContentLength,
    /// `:status` is not three digits, or 101 (RFC 9114 4.3.2 and 4.5).
    InvalidStatus,
}

impl fmt::Display for MalformedFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidName => "field name is not a token in lower case",
            Self::InvalidValue => "field value has a control byte or outer white space",
            Self::ConnectionField => "field is specific to a connection",
            Self::UnexpectedPseudoField => "pseudo-header field is not allowed",
            Self::LatePseudoField => "pseudo-header field after another field",
            Self::DuplicateField => "field occurs twice",
            Self::MissingPseudoField => "pseudo-header field is missing",
            Self::InvalidMethod => "method is not a token",
            Self::InvalidScheme => "scheme is invalid",
            Self::InvalidPath => "path is invalid",
            Self::InvalidAuthority => "authority is missing, invalid or ambiguous",
            Self::InvalidProtocol => "protocol is not a token",
            Self::InvalidContentLength => "content length is not a number",
            Self::InvalidStatus => "status is invalid",
        })
    }
}

impl std::error::Error for MalformedFields {}
