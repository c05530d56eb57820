//! [`Event`]: what a connection has received for the server.
//!
//! Returned by [`crate::Connection::receive`]. Invariant: the events of a stream begin with its head
//! and end with the end of the request or its reset.

use crate::error::{ConnectionError, ErrorCode};
use crate::stream::StreamKey;
use outboard_http_semantics::{Fields, Priority, RequestHead};

/// What was received: `'c` borrows from the connection, `'i` from the input.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'c, 'i> {
    /// A request.
    Head {
        /// Its stream.
        stream: StreamKey,
        /// Valid until the next call; `std::mem::swap` or `take` keep it.
        head: &'c mut RequestHead,
        /// The request has neither body nor trailers.
        is_end: bool,
    },
    /// A request whose fields exceed their limit; the server sends 431 (RFC 6585 5).
    HeadTooLarge {
        /// Its stream.
        stream: StreamKey,
    },
    /// A part of a body. The server releases its bytes once it has processed them.
    Data {
        /// Its stream.
        stream: StreamKey,
        /// May be empty at the end.
        data: &'i [u8],
        /// The request is complete.
        is_end: bool,
    },
    /// The trailers of a request, which is now complete.
    Trailers {
        /// Its stream.
        stream: StreamKey,
        /// Valid until the next call.
        fields: &'c Fields,
    },
    /// A stream is closed before its end.
    Reset {
        /// Its stream.
        stream: StreamKey,
        /// Why.
        code: ErrorCode,
        /// By the client, otherwise by the server because the client has violated the protocol.
        is_by_client: bool,
    },
    /// The client has changed the priority of a response (RFC 9218 7.1); the connection applies it.
    PriorityUpdate {
        /// Its stream.
        stream: StreamKey,
        /// The new priority.
        priority: Priority,
    },
    /// The client does not accept further streams of the server, and usually leaves.
    GoAway {
        /// Why.
        code: ErrorCode,
    },
    /// The response to [`crate::Connection::send_ping`].
    PingAck {
        /// What was sent.
        opaque: [u8; 8],
    },
}

/// An event without references.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Received {
    Head { stream: StreamKey, is_end: bool },
    HeadTooLarge { stream: StreamKey },
    Data { stream: StreamKey, start: usize, end: usize, is_end: bool },
    Trailers { stream: StreamKey },
    Reset { stream: StreamKey, code: ErrorCode, is_by_client: bool },
    PriorityUpdate { stream: StreamKey, priority: Priority },
    GoAway { code: ErrorCode },
    PingAck { opaque: [u8; 8] },
}

/// What became of a frame.
pub(crate) type Handled = Result<Option<Received>, ConnectionError>;

/// What became of the start of the input.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// More bytes are needed.
    Incomplete,
    /// So many bytes were consumed.
    Consumed(usize),
    /// So many bytes were consumed, for an event.
    Event(usize, Received),
}

impl Step {
    /// Bytes were consumed, perhaps for an event.
    pub(crate) fn of(bytes: usize, event: Option<Received>) -> Self {
        event.map_or(Self::Consumed(bytes), |event| Self::Event(bytes, event))
    }
}
