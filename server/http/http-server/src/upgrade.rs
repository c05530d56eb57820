//! A connection that continues with another protocol after `101` (RFC 9110 7.8), or begins with one.
//!
//! A service responds with `ResponseWriter::upgrade` and an [`UpgradeHandler`]; a listener of raw
//! connections passes each of them to `Service::serve_stream`. Invariant: the connection counts as open
//! until the handler has ended.

use crate::client::Client;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// Receives the connection after the `101`; the connection closes when it ends.
pub type UpgradeHandler = Box<dyn FnOnce(Upgraded) -> Pin<Box<dyn Future<Output = ()>>>>;

/// A connection after its `101`.
pub struct Upgraded {
    client: Rc<Client>,
    /// Bytes that followed the request.
    read_ahead: Vec<u8>,
}

impl Upgraded {
    pub(crate) fn new(client: Rc<Client>, read_ahead: Vec<u8>) -> Self {
        Self { client, read_ahead }
    }

    /// Who has connected.
    pub fn client(&self) -> &Rc<Client> {
        &self.client
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
        while self.client.transport.poll_readable().is_ready() {
            if let Some(read) = self.client.transport.try_read(into).transpose() {
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
            if let Some(written) =
                self.client.transport.try_write(&[IoSlice::new(bytes)]).transpose()
            {
                return Poll::Ready(written);
            }
            std::task::ready!(self.client.transport.poll_writable());
        }
    }

    /// Closes the sending side.
    pub fn end(&mut self) {
        self.client.transport.shutdown_write();
    }

    /// Whether it may be readable or writable; the current task is woken when either changes.
    pub fn poll_changed(&self) -> Poll<()> {
        self.client.transport.poll_readable_or_writable()
    }

    /// The address that the client has connected to; `None` for Unix sockets.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.client.transport.local_address()
    }

    /// Whether it uses TLS.
    pub fn is_encrypted(&self) -> bool {
        self.client.transport.is_encrypted()
    }

    /// Has the kernel collect small pieces (Nagle's algorithm).
    pub fn set_delay(&self) {
        self.client.transport.set_delay();
    }

    /// Closes it so that the client receives a reset, and not the end of the stream.
    pub fn reset(&self) {
        self.client.transport.reset();
    }

    /// Enables TCP keep-alive, so that a peer that vanished is noticed.
    pub fn keep_alive(&self) {
        self.client.transport.keep_alive();
    }

    /// Whether the server is stopping. Tasks are woken when it begins to; the handler should then end
    /// within the drain time-out.
    pub fn is_draining(&self) -> bool {
        self.client.context.ends_tunnels()
    }
}

/// Room for one read.
const READ_BYTES: usize = 4096;
