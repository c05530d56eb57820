//! Why a connection or a stream ends: the codes of RFC 9113 7, one variant per violation.
//!
//! Used by every module. Invariant: a violation has one code and one name, which the peer receives as
//! the debug data of GOAWAY and the server logs.

use std::fmt;

/// An error code of RST_STREAM or GOAWAY (RFC 9113 7); unknown ones have no special meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// The end is not the result of an error.
    pub const NO_ERROR: Self = Self(0x0);
    /// A violation that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// The endpoint failed.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// The peer sent more than a window allows.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame for a stream that is half-closed or closed.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame of an invalid size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The request was not processed and may be sent again.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(0x8);
    /// The state of the field compression is lost.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection of a CONNECT request failed.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer generates excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The properties of the transport do not suffice.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// The endpoint requires HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// The name of RFC 9113 7.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#x})", self.name(), self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! connection_errors {
    ($($(#[$doc:meta])* $variant:ident $code:ident $reason:literal)*) => {
        /// Why a connection ends: the peer has violated the protocol, or generates excessive load.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ConnectionError {
            $($(#[$doc])* $variant,)*
        }

        impl ConnectionError {
            /// Every variant, for tables and counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code of the GOAWAY frame.
            pub fn code(self) -> ErrorCode {
                match self {
                    $(Self::$variant => ErrorCode::$code,)*
                }
            }

            /// A stable name in snake case, for logs, counters and the debug data of GOAWAY.
            pub fn reason(self) -> &'static str {
                match self {
                    $(Self::$variant => $reason,)*
                }
            }
        }
    };
}

connection_errors! {
    /// The connection does not start with the client's preface (RFC 9113 3.4).
    InvalidPreface PROTOCOL_ERROR "invalid_preface"
    /// The first frame is not SETTINGS (RFC 9113 3.4).
    SettingsExpected PROTOCOL_ERROR "settings_expected"
    /// A frame longer than SETTINGS_MAX_FRAME_SIZE (RFC 9113 4.2).
    FrameTooLong FRAME_SIZE_ERROR "frame_too_long"
    /// A frame whose type requires another length (RFC 9113 6).
    InvalidFrameLength FRAME_SIZE_ERROR "invalid_frame_length"
    /// A frame on a stream or a connection that its type does not allow (RFC 9113 6).
    InvalidStreamId PROTOCOL_ERROR "invalid_stream_id"
    /// A frame for a stream that was never opened (RFC 9113 5.1).
    IdleStream PROTOCOL_ERROR "idle_stream"
    /// HEADERS or DATA for a stream that is closed (RFC 9113 5.1).
    ClosedStream STREAM_CLOSED "closed_stream"
    /// More padding than the frame has bytes (RFC 9113 6.1).
    InvalidPadding PROTOCOL_ERROR "invalid_padding"
    /// A frame between HEADERS and its CONTINUATION, or CONTINUATION without HEADERS (RFC 9113 6.10).
    ContinuationExpected PROTOCOL_ERROR "continuation_expected"
    /// A client does not send PUSH_PROMISE (RFC 9113 8.4).
    PushByClient PROTOCOL_ERROR "push_by_client"
    /// A setting outside of its range (RFC 9113 6.5.2).
    InvalidSetting PROTOCOL_ERROR "invalid_setting"
    /// SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1, or windows that exceed it (RFC 9113 6.9.2).
    InvalidInitialWindow FLOW_CONTROL_ERROR "invalid_initial_window"
    /// A window update of zero for the connection (RFC 9113 6.9).
    EmptyWindowUpdate PROTOCOL_ERROR "empty_window_update"
    /// The connection's window exceeds 2^31-1 (RFC 9113 6.9.1).
    WindowOverflow FLOW_CONTROL_ERROR "window_overflow"
    /// More DATA than the connection's window allows (RFC 9113 6.9).
    WindowExceeded FLOW_CONTROL_ERROR "window_exceeded"
    /// A field block that cannot be decoded (RFC 7541 6.3).
    InvalidFieldBlock COMPRESSION_ERROR "invalid_field_block"
    /// A malformed PRIORITY_UPDATE (RFC 9218 7.1).
    InvalidPriorityUpdate PROTOCOL_ERROR "invalid_priority_update"
    /// A field block of too many bytes or CONTINUATION frames.
    FieldBlockTooLong ENHANCE_YOUR_CALM "field_block_too_long"
    /// The client resets too many streams (CVE-2023-44487).
    TooManyResets ENHANCE_YOUR_CALM "too_many_resets"
    /// The client provokes too many resets by the server (CVE-2025-8671).
    TooManyProvokedResets ENHANCE_YOUR_CALM "too_many_provoked_resets"
    /// Too many SETTINGS.
    TooManySettings ENHANCE_YOUR_CALM "too_many_settings"
    /// Too many PINGs.
    TooManyPings ENHANCE_YOUR_CALM "too_many_pings"
    /// Too many WINDOW_UPDATEs for the DATA that was sent.
    TooManyWindowUpdates ENHANCE_YOUR_CALM "too_many_window_updates"
    /// Too many PRIORITY and PRIORITY_UPDATE frames.
    TooManyPriorities ENHANCE_YOUR_CALM "too_many_priorities"
    /// Too many DATA frames without data.
    TooManyEmptyFrames ENHANCE_YOUR_CALM "too_many_empty_frames"
    /// Too many DATA frames of a few bytes.
    TooManySmallFrames ENHANCE_YOUR_CALM "too_many_small_frames"
    /// Too many frames of unknown types, or for streams that are closed.
    TooManyStrayFrames ENHANCE_YOUR_CALM "too_many_stray_frames"
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for ConnectionError {}

/// Why a call for a stream has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendError {
    /// The stream was reset, or its response is complete.
    StreamClosed,
    /// Data before the head, a second head, or anything after the end.
    WrongOrder,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamClosed => "the stream is closed",
            Self::WrongOrder => "the parts of the response are out of order",
        })
    }
}

impl std::error::Error for SendError {}
