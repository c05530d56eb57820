//! [`Channel`]: a connection that speaks something other than HTTP.
//!
//! Given by [`crate::Client::dial`]; whoever has it owns the protocol.

use crate::transport::Transport;
use std::io;
use std::task::Poll;

/// Where to, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Whether TLS is spoken; `Some(false)` for any certificate.
    pub tls_verified: Option<bool>,
}

/// A connection for bytes both ways.
#[derive(Debug)]
pub struct Channel {
    transport: Transport,
}

impl Channel {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// Appends what has come; 0 at the end of the stream. The current task is woken for more.
    ///
    /// # Errors
    /// What `read(2)` or TLS reports.
    pub fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        self.transport.poll_read(out)
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// What `write(2)` or TLS reports.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.transport.write_all(bytes, b"").await
    }
}
