//! The bytes under HTTP: a plain socket, or TLS on one.
//!
//! Owned by one connection. Everything polls the socket for the current task of the loop.

use outboard_reactor::Stream;
use outboard_tls::Session;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Poll, ready};

/// Room for a read.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// A connected peer.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain(Stream),
    Tls(Box<Session>),
}

impl Transport {
    /// Waits for data and appends what there is; 0 at the end of the stream.
    pub(crate) async fn read(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        poll_fn(|_| self.poll_read(out)).await
    }

    pub(crate) fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self {
            Self::Tls(tls) => tls.poll_read(out),
            Self::Plain(stream) => loop {
                ready!(stream.source().poll_readable());
                if out.capacity() - out.len() < READ_BYTES / 4 {
                    out.reserve(READ_BYTES);
                }
                if let Some(count) = stream.try_read(out)? {
                    return Poll::Ready(Ok(count));
                }
            },
        }
    }

    /// Writes all of both pieces.
    pub(crate) async fn write_all(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) if body.is_empty() => {
                stream.write_all(&mut [IoSlice::new(head)]).await
            }
            Self::Plain(stream) => {
                stream.write_all(&mut [IoSlice::new(head), IoSlice::new(body)]).await
            }
            Self::Tls(tls) => {
                for mut piece in [head, body] {
                    while !piece.is_empty() {
                        let slices = [IoSlice::new(piece)];
                        let taken = poll_fn(|_| tls.poll_write(&slices)).await?;
                        piece = &piece[taken..];
                    }
                }
                poll_fn(|_| tls.poll_flush()).await
            }
        }
    }

    /// Takes bytes to send, as many as there is room for.
    pub(crate) fn poll_write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tls(tls) => tls.poll_write(&[IoSlice::new(bytes)]),
            Self::Plain(stream) => loop {
                if let Some(count) = stream.try_write(&[IoSlice::new(bytes)])? {
                    return Poll::Ready(Ok(count));
                }
                ready!(stream.source().poll_writable());
            },
        }
    }

    /// Hands over what [`Self::poll_write`] took.
    pub(crate) fn poll_flush(&mut self) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(tls) => tls.poll_flush(),
            Self::Plain(_) => Poll::Ready(Ok(())),
        }
    }

    /// Ends the sending side, as far as the socket takes that at once.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Tls(tls) => tls.close(),
            Self::Plain(stream) => stream.shutdown_write(),
        }
    }

    /// Whether an idle connection can take a request: the peer has neither closed it nor sent
    /// anything that nobody asked for.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let stream = match self {
            Self::Plain(stream) => stream,
            Self::Tls(tls) => tls.stream(),
        };
        if stream.source().poll_readable().is_pending() {
            return true;
        }
        match self {
            // News of TLS need not be data (session tickets), so the session has to look.
            Self::Tls(tls) => {
                let mut nothing = Vec::new();
                tls.poll_read(&mut nothing).is_pending()
            }
            Self::Plain(stream) => {
                let mut byte = Vec::with_capacity(1);
                matches!(stream.try_read(&mut byte), Ok(None))
            }
        }
    }
}
