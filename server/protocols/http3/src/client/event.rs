//! [`ClientEvent`]: what the bytes of a stream of the server mean.
//!
//! Reported by each stream of the connection.

use crate::error::StreamError;
use crate::response::ResponseHead;
use crate::settings::Settings;
use std::ops::Range;

/// What the bytes of a stream mean.
#[derive(Debug)]
pub enum ClientEvent<'a> {
    /// The final head of a response.
    Head {
        /// The stream of its request.
        stream_id: u64,
        /// Its status and fields.
        head: &'a ResponseHead,
    },
    /// A part of the body.
    Data {
        /// The stream of the request.
        stream_id: u64,
        /// Where it is in the bytes that were passed to [`receive`](crate::ClientConnection::receive).
        range: Range<usize>,
    },
    /// A response is complete.
    End {
        /// The stream of its request.
        stream_id: u64,
    },
    /// A response ends with an error. The caller stops reading with its code.
    StreamError {
        /// The stream of its request.
        stream_id: u64,
        /// The reason.
        error: StreamError,
    },
    /// The server's settings.
    Settings(Settings),
    /// The server does not process requests from this stream on, and accepts no new ones
    /// (RFC 9114 5.2).
    GoAway {
        /// The first stream that is not processed.
        stream_id: u64,
    },
    /// A stream of an unknown type. The caller stops reading it with
    /// [`STREAM_CREATION_ERROR`](crate::ErrorCode::STREAM_CREATION_ERROR), and does not pass on further bytes.
    UnknownStream {
        /// The stream.
        stream_id: u64,
    },
}
