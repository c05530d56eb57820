//! Error codes, and the errors of a connection and of a stream (RFC 9114 8, RFC 9204 6).
//!
//! Returned by every part of this crate. The caller sends the code: with CONNECTION_CLOSE, or with
//! RESET_STREAM and STOP_SENDING.

use outboard_header_compression::{DecodeError, qpack};
use outboard_http_semantics::MalformedFields;
use std::fmt;

/// The application error code of a QUIC frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u64);

macro_rules! error_codes {
    ($($(#[$doc:meta])* $constant:ident $code:expr, $name:literal)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $constant: Self = Self($code);)*

            /// The name in the RFCs.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$constant => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

error_codes! {
    /// There is no error.
    NO_ERROR 0x100, "H3_NO_ERROR"
    /// A violation that has no code of its own.
    GENERAL_PROTOCOL_ERROR 0x101, "H3_GENERAL_PROTOCOL_ERROR"
    /// An error of this side.
    INTERNAL_ERROR 0x102, "H3_INTERNAL_ERROR"
    /// A stream that must not be opened.
    STREAM_CREATION_ERROR 0x103, "H3_STREAM_CREATION_ERROR"
    /// A control or QPACK stream was closed.
    CLOSED_CRITICAL_STREAM 0x104, "H3_CLOSED_CRITICAL_STREAM"
    /// A frame that is not allowed here.
    FRAME_UNEXPECTED 0x105, "H3_FRAME_UNEXPECTED"
    /// A frame with the wrong layout or size.
    FRAME_ERROR 0x106, "H3_FRAME_ERROR"
    /// The peer causes too much work.
    EXCESSIVE_LOAD 0x107, "H3_EXCESSIVE_LOAD"
    /// A stream or push identifier that is not allowed.
    ID_ERROR 0x108, "H3_ID_ERROR"
    /// An error in the SETTINGS frame.
    SETTINGS_ERROR 0x109, "H3_SETTINGS_ERROR"
    /// The control stream does not begin with SETTINGS.
    MISSING_SETTINGS 0x10a, "H3_MISSING_SETTINGS"
    /// The server has not processed the request.
    REQUEST_REJECTED 0x10b, "H3_REQUEST_REJECTED"
    /// The request or its response is no longer needed.
    REQUEST_CANCELLED 0x10c, "H3_REQUEST_CANCELLED"
    /// The stream ended without a complete request.
    REQUEST_INCOMPLETE 0x10d, "H3_REQUEST_INCOMPLETE"
    /// A malformed message.
    MESSAGE_ERROR 0x10e, "H3_MESSAGE_ERROR"
    /// The connection of a CONNECT request was reset.
    CONNECT_ERROR 0x10f, "H3_CONNECT_ERROR"
    /// The request has to be sent over HTTP/1.1.
    VERSION_FALLBACK 0x110, "H3_VERSION_FALLBACK"
    /// A field section cannot be decoded.
    QPACK_DECOMPRESSION_FAILED qpack::DECOMPRESSION_FAILED, "QPACK_DECOMPRESSION_FAILED"
    /// An invalid instruction on the encoder stream.
    QPACK_ENCODER_STREAM_ERROR qpack::ENCODER_STREAM_ERROR, "QPACK_ENCODER_STREAM_ERROR"
    /// An invalid instruction on the decoder stream.
    QPACK_DECODER_STREAM_ERROR qpack::DECODER_STREAM_ERROR, "QPACK_DECODER_STREAM_ERROR"
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// An error that ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionError {
    code: ErrorCode,
    description: &'static str,
    source: Option<DecodeError>,
}

impl ConnectionError {
    pub(crate) fn new(code: ErrorCode, description: &'static str) -> Self {
        Self { code, description, source: None }
    }

    pub(crate) fn of_qpack(code: ErrorCode, source: DecodeError) -> Self {
        Self { code, description: "fields cannot be decoded", source: Some(source) }
    }

    /// The code to close the connection with.
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.description)
    }
}

impl std::error::Error for ConnectionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// An error that ends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamError {
    /// The fields of the message or its trailers are larger than the limit (RFC 6585 5).
    FieldsTooLarge,
    /// The stream is not below the identifier of the GOAWAY that was sent (RFC 9114 5.2).
    Refused,
    /// The stream ended without a head.
    Incomplete,
    /// The head or the trailers are malformed (RFC 9114 4.1.2).
    Malformed(MalformedFields),
    /// The body is not as long as Content-Length (RFC 9114 4.1.2).
    ContentLengthMismatch,
}

impl StreamError {
    /// The code to reset the stream with.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::FieldsTooLarge => ErrorCode::EXCESSIVE_LOAD,
            Self::Refused => ErrorCode::REQUEST_REJECTED,
            Self::Incomplete => ErrorCode::REQUEST_INCOMPLETE,
            Self::Malformed(_) | Self::ContentLengthMismatch => ErrorCode::MESSAGE_ERROR,
        }
    }

    /// The status code of a response that a server can send before.
    pub fn status(self) -> u16 {
        match self {
            Self::FieldsTooLarge => 431,
            Self::Refused => 503,
            _ => 400,
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FieldsTooLarge => "fields are larger than the limit",
            Self::Refused => "stream is not accepted after GOAWAY",
            Self::Incomplete => "stream ended before the head",
            Self::Malformed(_) => "fields are malformed",
            Self::ContentLengthMismatch => "body is not as long as Content-Length",
        })
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed(source) => Some(source),
            _ => None,
        }
    }
}
