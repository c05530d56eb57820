//! [`ResponseData`]: the part of a response that has arrived since it was last taken.
//!
//! Filled by [`super::Exchange`], taken by the connection's task. Invariant: buffers that are used again are empty and small.

use outboard_buffer::Held;
use outboard_log::Reason;

/// The capacity above which a buffer is freed after its request.
pub(super) const MAX_REUSED_BYTES: usize = 16 * 1024;

/// How a response has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is complete.
    Complete,
    /// It will never be complete.
    Failed(Reason),
}

/// See the module.
#[derive(Debug, Default)]
pub struct ResponseData {
    /// Payloads of `Interim` frames.
    pub interim: Vec<Vec<u8>>,
    /// Payload of the `Head` frame; empty before it has arrived.
    pub head: Vec<u8>,
    /// Bytes of the body.
    pub body: Vec<u8>,
    /// Payload of the `Trailers` frame; empty if there is none.
    pub trailers: Vec<u8>,
    /// PHP has called `flush()`.
    pub flush: bool,
    /// The end of the response.
    pub end: Option<End>,
    /// Counts the memory of all of it.
    pub held: Option<Held>,
}

impl ResponseData {
    pub(super) fn is_empty(&self) -> bool {
        self.interim.is_empty()
            && self.head.is_empty()
            && self.body.is_empty()
            && self.trailers.is_empty()
            && !self.flush
            && self.end.is_none()
    }

    /// Removes everything; the memory of ordinary responses remains.
    pub fn clear(&mut self) {
        reuse(&mut self.body);
        reuse(&mut self.head);
        (self.interim, self.trailers) = (Vec::new(), Vec::new());
        (self.flush, self.end, self.held) = (false, None, None);
        debug_assert!(self.is_empty(), "of an earlier request");
    }

    /// Adds body, trailers and end of a later part.
    pub fn append(&mut self, later: Self) {
        self.body.extend_from_slice(&later.body);
        if !later.trailers.is_empty() {
            self.trailers = later.trailers;
        }
        self.flush |= later.flush;
        self.end = later.end;
        match (&mut self.held, later.held) {
            (Some(held), Some(later)) => held.grow(later.bytes()),
            (held, later) => *held = held.take().or(later),
        }
    }
}

/// Empties a buffer for reuse, and frees a large one.
pub(super) fn reuse(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > MAX_REUSED_BYTES {
        *buffer = Vec::new();
    }
}
