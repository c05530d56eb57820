//! [`MessageStream`]: a request and its response on a connection that has many at a time.
//!
//! Implemented by the front ends of HTTP/2, used by [`crate::transport`] and by the writers of
//! responses. Invariants: nothing waits; what is accepted is sent in order; a response that is not ended
//! is reset when the stream is dropped, so that no client takes it for complete.

use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::Poll;

/// The end of a response whose head is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// With the head.
    Nothing,
    /// After so many bytes, at least one.
    Length(u64),
    /// When the stream is ended.
    Open,
}

/// A head whose lines are in the output buffer; it is sent with the first write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingHead {
    pub(crate) status: u16,
    pub(crate) announced: Announced,
}

/// See the module.
pub trait MessageStream: Debug {
    /// Whether a read of the request's body would not wait; the current task is woken when that changes.
    fn poll_readable(&self) -> Poll<()>;

    /// Appends what has arrived of the body; `None` if a read would wait, 0 at the end. The client may
    /// then send as much again.
    ///
    /// # Errors
    /// The stream was reset before the end of the request.
    fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>>;

    /// Whether all of the request was received and read.
    fn is_read(&self) -> bool;

    /// Whether a write would not wait.
    fn poll_writable(&self) -> Poll<()>;

    /// The bytes that a write would accept.
    fn free_bytes(&self) -> usize;

    /// Sends an interim response with these header lines.
    fn send_interim(&self, status: u16, lines: &[u8]);

    /// Sends the head of the response with these header lines. Fields of an HTTP/1.1 connection are left
    /// out.
    fn send_head(&self, status: u16, lines: &[u8], announced: Announced);

    /// Sends a part of the body; `None` if nothing is accepted now.
    ///
    /// # Errors
    /// The stream is closed.
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>>;

    /// Ends the response with trailers.
    fn send_trailers(&self, lines: &[u8]);

    /// Ends the response. One that is shorter than announced is reset.
    fn end(&self);

    /// Resets the stream: the response is incomplete.
    fn reset(&self);

    /// Whether the stream is closed, and nothing can be sent any more.
    fn poll_gone(&self) -> Poll<()>;

    /// Whether the connection is encrypted.
    fn is_encrypted(&self) -> bool;

    /// The address that the client has connected to.
    fn local_address(&self) -> Option<SocketAddr>;
}
