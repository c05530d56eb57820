//! [`Event`]: what the bytes of a stream of the client mean.
//!
//! Reported by each stream of the connection.

use crate::error::StreamError;
use crate::settings::Settings;
use outboard_http_semantics::{Fields, Priority, RequestHead};
use std::ops::Range;

/// What the bytes of a stream mean.
#[derive(Debug)]
pub enum Event<'a> {
    /// A request begins.
    Head {
        /// Its stream.
        stream_id: u64,
        /// Its pseudo-header fields and fields.
        head: &'a RequestHead,
        /// Whether it has no body and no trailers; no other event follows.
        is_end: bool,
    },
    /// A part of the body.
    Data {
        /// The stream of the request.
        stream_id: u64,
        /// Where it is in the bytes that were passed to [`Connection::receive`](crate::Connection::receive).
        range: Range<usize>,
    },
    /// The trailers of a request.
    Trailers {
        /// The stream of the request.
        stream_id: u64,
        /// The fields.
        fields: &'a Fields,
    },
    /// A request is complete.
    End {
        /// Its stream.
        stream_id: u64,
    },
    /// A request ends with an error. The caller resets the stream or sends an error response, stops
    /// reading, and does not pass on further bytes of the stream.
    StreamError {
        /// Its stream.
        stream_id: u64,
        /// The reason.
        error: StreamError,
    },
    /// The rest of a stream that was blocked can be passed on.
    Unblocked {
        /// The stream.
        stream_id: u64,
    },
    /// The client's settings.
    Settings(Settings),
    /// The client will accept no push from this identifier on, and closes the connection soon.
    GoAway {
        /// A push identifier.
        push_id: u64,
    },
    /// The priority of a request, which may not have begun (RFC 9218 7.1).
    PriorityUpdate {
        /// The stream of the request.
        stream_id: u64,
        /// The new priority.
        priority: Priority,
    },
    /// A stream of an unknown type. The caller stops reading it with
    /// [`STREAM_CREATION_ERROR`](crate::ErrorCode::STREAM_CREATION_ERROR), and does not pass on further bytes.
    UnknownStream {
        /// The stream.
        stream_id: u64,
    },
}
