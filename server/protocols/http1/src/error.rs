//! Why a head is refused: one variant per reason, one table for its status code and its name.
//!
//! Read by the gateway for the response, the log and the counters. Every error closes the connection:
//! after an ambiguous head, no later byte can be trusted.

use std::fmt;

macro_rules! head_errors {
    ($($(#[$doc:meta])* $variant:ident $status:literal $reason:literal)*) => {
        /// Why a message head is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum HeadError {
            $($(#[$doc])* $variant,)*
        }

        impl HeadError {
            /// Every variant, for tables and counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The status code that a server sends before it closes the connection.
            ///
            /// A proxy that refuses an upstream's response sends 502.
            pub fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)*
                }
            }

            /// A stable name in snake case, for logs and counters.
            pub fn reason(self) -> &'static str {
                match self {
                    $(Self::$variant => $reason,)*
                }
            }
        }
    };
}

head_errors! {
    /// More empty lines before the request line than are tolerated (RFC 9112 2.2).
    TooManyEmptyLines 400 "too_many_empty_lines"
    /// CR that LF does not follow (RFC 9112 2.2).
    BareCr 400 "bare_cr"
    /// LF that CR does not precede (RFC 9112 2.2).
    BareLf 400 "bare_lf"
    /// The request line is not `method SP target SP version` (RFC 9112 3).
    MalformedRequestLine 400 "malformed_request_line"
    /// The method is not a token (RFC 9110 9.1), or is longer than any registered one by far.
    InvalidMethod 400 "invalid_method"
    /// The request line is longer than its limit.
    RequestLineTooLong 414 "request_line_too_long"
    /// The third word of the request line is not `HTTP/digit.digit` (RFC 9112 2.3).
    MalformedVersion 400 "malformed_version"
    /// An HTTP version other than 1.x (RFC 9110 15.6.6).
    UnsupportedVersion 505 "unsupported_version"
    /// A byte outside visible ASCII in the request target (RFC 9112 3.2).
    InvalidTargetByte 400 "invalid_target_byte"
    /// A `#` in the request target (RFC 9110 7.1: the fragment is not sent).
    FragmentInTarget 400 "fragment_in_target"
    /// The target has none of the four forms (RFC 9112 3.2).
    InvalidTarget 400 "invalid_target"
    /// An absolute-form target whose scheme or authority is not acceptable (RFC 9112 3.2.2).
    InvalidAbsoluteForm 400 "invalid_absolute_form"
    /// `*` with another method than OPTIONS (RFC 9112 3.2.4).
    AsteriskFormNotAllowed 400 "asterisk_form_not_allowed"
    /// CONNECT whose target is not `host:port` (RFC 9112 3.2.3).
    AuthorityFormRequired 400 "authority_form_required"
    /// The status line is not `version SP 3DIGIT SP [reason]` (RFC 9112 4).
    MalformedStatusLine 400 "malformed_status_line"
    /// White space between the start line and the first field (RFC 9112 2.2).
    WhitespaceBeforeHeaders 400 "whitespace_before_headers"
    /// A folded field line (RFC 9112 5.2).
    ObsFold 400 "obs_fold"
    /// A field line that starts with its colon (RFC 9112 5).
    EmptyHeaderName 400 "empty_header_name"
    /// White space before the colon (RFC 9112 5.1).
    SpaceBeforeColon 400 "space_before_colon"
    /// A field line without a colon (RFC 9112 5).
    MissingColon 400 "missing_colon"
    /// A byte in a field name that no token may hold (RFC 9110 5.1).
    InvalidHeaderName 400 "invalid_header_name"
    /// NUL or another control byte in a field value (RFC 9110 5.5).
    ControlInHeaderValue 400 "control_in_header_value"
    /// The field lines together are longer than their limit (RFC 6585 5).
    HeadersTooLong 431 "headers_too_long"
    /// More field lines than the limit (RFC 6585 5).
    TooManyHeaders 431 "too_many_headers"
    /// An HTTP/1.1 request without Host (RFC 9112 3.2).
    MissingHost 400 "missing_host"
    /// More than one Host (RFC 9112 3.2).
    DuplicateHost 400 "duplicate_host"
    /// A Host that names no host and port, or none where one is needed (RFC 9112 3.2).
    InvalidHost 400 "invalid_host"
    /// A Content-Length that is not digits alone or too large; lists too (RFC 9112 6.3).
    MalformedContentLength 400 "malformed_content_length"
    /// More than one Content-Length, equal or not (RFC 9112 6.3).
    DuplicateContentLength 400 "duplicate_content_length"
    /// Content-Length together with Transfer-Encoding (RFC 9112 6.1).
    LengthWithTransferEncoding 400 "length_with_transfer_encoding"
    /// Transfer-Encoding in HTTP/1.0 (RFC 9112 6.1).
    TransferEncodingInHttp10 400 "transfer_encoding_in_http10"
    /// More than one Transfer-Encoding line (RFC 9112 6.1).
    DuplicateTransferEncoding 400 "duplicate_transfer_encoding"
    /// A Transfer-Encoding that is not a list of tokens (RFC 9112 6.1).
    MalformedTransferEncoding 400 "malformed_transfer_encoding"
    /// `chunked` that is not last or comes twice (RFC 9112 6.1, 6.3).
    ChunkedNotLast 400 "chunked_not_last"
    /// A transfer coding other than `chunked` (RFC 9112 6.1).
    UnknownTransferCoding 501 "unknown_transfer_coding"
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for HeadError {}
