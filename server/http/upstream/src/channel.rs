//! [`Channel`]: a connection with another protocol than HTTP.
//!
//! Returned by [`crate::Client::dial`], and by a [`crate::Response`] that switched protocols. Its owner
//! speaks the protocol.

use crate::account::Share;
use crate::transport::Transport;
use std::io;
use std::task::Poll;

/// The peer of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Whether to use TLS; `Some(false)` accepts any certificate.
    pub tls_verified: Option<bool>,
}

/// A connection for bytes both ways.
#[derive(Debug)]
pub struct Channel {
    transport: Transport,
    /// Bytes that were received before the switch.
    ahead: Vec<u8>,
    /// Counts the channel.
    _share: Option<Share>,
}

impl Channel {
    pub(crate) fn new(transport: Transport, ahead: Vec<u8>, share: Option<Share>) -> Self {
        Self { transport, ahead, _share: share }
    }

    /// Appends received bytes; 0 at the end of the stream. Wakes the current task for more.
    ///
    /// # Errors
    /// What `read(2)` or TLS reports.
    pub fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if self.ahead.is_empty() {
            return self.transport.poll_read(out);
        }
        let ahead = std::mem::take(&mut self.ahead);
        out.extend_from_slice(&ahead);
        Poll::Ready(Ok(ahead.len()))
    }

    /// Accepts bytes to send, as many as there is room for.
    ///
    /// # Errors
    /// What `write(2)` or TLS reports.
    pub fn poll_write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.transport.poll_write(bytes)
    }

    /// Sends the bytes that [`Self::poll_write`] accepted.
    ///
    /// # Errors
    /// What `write(2)` or TLS reports.
    pub fn poll_flush(&mut self) -> Poll<io::Result<()>> {
        self.transport.poll_flush()
    }

    /// Ends the sending side.
    pub fn end(&mut self) {
        self.transport.end();
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// What `write(2)` or TLS reports.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.transport.write_all(bytes, b"").await
    }
}
