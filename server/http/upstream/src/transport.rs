//! The transport under HTTP: a plain socket, or TLS.
//!
//! Owned by one connection. Every operation polls the socket for the current task of the loop.

use crate::sockets::Socket;
use outboard_reactor::{Stream, without_budget};
use outboard_tls::Session;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Poll, ready};

/// Room for a read.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// A connected peer.
#[derive(Debug)]
pub(crate) struct Transport {
    bytes: Bytes,
    socket: Socket,
    /// Counts it among the connections for requests to its origin.
    of_origin: Option<Socket>,
}

#[derive(Debug)]
enum Bytes {
    Plain(Stream),
    Tls(Box<Session>),
}

impl Transport {
    pub(crate) fn plain(stream: Stream, socket: Socket) -> Self {
        Self { bytes: Bytes::Plain(stream), socket, of_origin: None }
    }

    pub(crate) fn tls(session: Session, socket: Socket) -> Self {
        Self { bytes: Bytes::Tls(Box::new(session)), socket, of_origin: None }
    }

    /// Counts among the connections for requests to its origin, or with `None` not any more.
    pub(crate) fn count_for_origin(&mut self, place: Option<Socket>) {
        self.of_origin = place;
    }

    /// The session of a peer that has chosen HTTP/2.
    ///
    /// # Errors
    /// The transport of a peer that has not.
    pub(crate) fn into_http2(self) -> Result<(Box<Session>, Socket), Self> {
        match self.bytes {
            Bytes::Tls(session) if session.is_http2() => Ok((session, self.socket)),
            bytes => Err(Self { bytes, ..self }),
        }
    }

    /// Waits for data and appends it; 0 at the end of the stream.
    pub(crate) async fn read(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        poll_fn(|_| self.poll_read(out)).await
    }

    pub(crate) fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match &mut self.bytes {
            Bytes::Tls(tls) => tls.poll_read(out),
            Bytes::Plain(stream) => loop {
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
        match &mut self.bytes {
            Bytes::Plain(stream) if body.is_empty() => {
                stream.write_all(&mut [IoSlice::new(head)]).await
            }
            Bytes::Plain(stream) => {
                stream.write_all(&mut [IoSlice::new(head), IoSlice::new(body)]).await
            }
            Bytes::Tls(tls) => {
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

    /// Accepts bytes to send, as many as there is room for.
    pub(crate) fn poll_write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.bytes {
            Bytes::Tls(tls) => tls.poll_write(&[IoSlice::new(bytes)]),
            Bytes::Plain(stream) => loop {
                if let Some(count) = stream.try_write(&[IoSlice::new(bytes)])? {
                    return Poll::Ready(Ok(count));
                }
                ready!(stream.source().poll_writable());
            },
        }
    }

    /// Sends the bytes that [`Self::poll_write`] accepted.
    pub(crate) fn poll_flush(&mut self) -> Poll<io::Result<()>> {
        match &mut self.bytes {
            Bytes::Tls(tls) => tls.poll_flush(),
            Bytes::Plain(_) => Poll::Ready(Ok(())),
        }
    }

    /// The connection is idle: another loop may have it closed.
    pub(crate) fn rest(&mut self) {
        self.sockets().for_each(Socket::rest);
    }

    /// The connection is in use again.
    pub(crate) fn resume(&mut self) {
        self.sockets().for_each(Socket::resume);
    }

    fn sockets(&mut self) -> impl Iterator<Item = &mut Socket> {
        [&mut self.socket].into_iter().chain(&mut self.of_origin)
    }

    /// Ends the sending side, as far as possible without waiting.
    pub(crate) fn end(&mut self) {
        match &mut self.bytes {
            Bytes::Tls(tls) => tls.close(),
            Bytes::Plain(stream) => stream.shutdown_write(),
        }
    }

    /// Whether an idle connection is usable: the peer has neither closed it nor sent unsolicited data.
    pub(crate) fn is_quiet(&mut self) -> bool {
        without_budget(|| self.has_no_news())
    }

    fn has_no_news(&mut self) -> bool {
        let stream = match &mut self.bytes {
            Bytes::Plain(stream) => stream,
            Bytes::Tls(tls) => tls.stream(),
        };
        if stream.source().poll_readable().is_pending() {
            return true;
        }
        match &mut self.bytes {
            // TLS records need not be data (session tickets), so the session must read them.
            Bytes::Tls(tls) => {
                let mut nothing = Vec::new();
                tls.poll_read(&mut nothing).is_pending()
            }
            Bytes::Plain(stream) => {
                let mut byte = Vec::with_capacity(1);
                matches!(stream.try_read(&mut byte), Ok(None))
            }
        }
    }
}
