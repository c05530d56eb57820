//! A connection that continues with another protocol after `101` (RFC 9110 7.8).
//!
//! A service responds with `Connection::upgrade` and an [`UpgradeHandler`]. Invariant: the
//! connection counts as open until the handler has ended.

use crate::server_context::ServerContext;
use crate::transport::Transport;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// Receives the connection after the `101`; the connection closes when it ends.
pub type UpgradeHandler = Box<dyn FnOnce(Upgraded) -> Pin<Box<dyn Future<Output = ()>>>>;

/// A connection after its `101`.
#[derive(Debug)]
pub struct Upgraded {
    transport: Transport,
    /// Bytes that followed the request.
    read_ahead: Vec<u8>,
    context: Rc<ServerContext>,
}

impl Upgraded {
    pub(crate) fn new(
        transport: Transport,
        read_ahead: Vec<u8>,
        context: Rc<ServerContext>,
    ) -> Self {
        Self { transport, read_ahead, context }
    }

    /// Appends bytes that have arrived; 0 at the end.
    ///
    /// # Errors
    /// Errors of `read(2)`.
    pub fn poll_read(&mut self, into: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if !self.read_ahead.is_empty() {
            let ahead = std::mem::take(&mut self.read_ahead);
            into.extend_from_slice(&ahead);
            return Poll::Ready(Ok(ahead.len()));
        }
        into.reserve(READ_BYTES);
        while self.transport.poll_readable().is_ready() {
            if let Some(read) = self.transport.try_read(into).transpose() {
                return Poll::Ready(read);
            }
        }
        Poll::Pending
    }

    /// Writes what the client takes.
    ///
    /// # Errors
    /// Errors of `write(2)`.
    pub fn poll_write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            if let Some(written) = self.transport.try_write(&[IoSlice::new(bytes)]).transpose() {
                return Poll::Ready(written);
            }
            std::task::ready!(self.transport.poll_writable());
        }
    }

    /// Closes the sending side.
    pub fn end(&mut self) {
        self.transport.shutdown_write();
    }

    /// Enables TCP keep-alive, so that a peer that vanished is noticed.
    pub fn keep_alive(&self) {
        self.transport.keep_alive();
    }

    /// Whether the server is stopping. Tasks are woken when it begins to; the handler should then end
    /// within the drain time-out.
    pub fn is_draining(&self) -> bool {
        self.context.is_draining()
    }
}

/// Room for one read.
const READ_BYTES: usize = 4096;
