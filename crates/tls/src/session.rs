//! [`Session`]: TLS on one stream of the loop, from either side.
//!
//! Owned by one connection; everything polls the socket for the current task. Invariants: an end of
//! the stream without the peer's `close_notify` is an error and never an end of data (RFC 8446
//! 6.1); after an error nothing is sent but the alert; between two requests a session keeps no buffers.

use crate::server::ServerSettings;
use outboard_reactor::{Stream, without_budget};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConnection};
use std::io::{self, BufRead, IoSlice, Write};
use std::sync::Arc;
use std::task::{Poll, ready};

/// Room for a read of records.
const READ_BYTES: usize = 16 * 1024 + 512;

/// One session over one connection.
#[derive(Debug)]
pub struct Session {
    stream: Stream,
    session: Connection,
    /// Records that came and that the session has not taken yet.
    incoming: Vec<u8>,
    /// Records that the socket has not taken yet.
    outgoing: Vec<u8>,
    is_abandoned: bool,
    /// Whether the peer broke the protocol.
    has_failed: bool,
}

impl Session {
    /// Begins a session as a client and shakes hands.
    ///
    /// # Errors
    /// What the peer or rustls do not agree to, or the socket's.
    pub async fn connect(
        stream: Stream,
        settings: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Self> {
        let session = ClientConnection::new(settings, name).map_err(io::Error::other)?;
        Self::begin(stream, session.into()).await
    }

    /// Shakes hands with a client.
    ///
    /// # Errors
    /// As [`Session::connect`].
    pub async fn accept(stream: Stream, settings: &ServerSettings) -> io::Result<Self> {
        let session = ServerConnection::new(settings.rustls.clone()).map_err(io::Error::other)?;
        Self::begin(stream, session.into()).await
    }

    async fn begin(stream: Stream, session: Connection) -> io::Result<Self> {
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        let mut one =
            Self { stream, session, incoming, outgoing, is_abandoned: false, has_failed: false };
        std::future::poll_fn(|_| one.poll_handshake()).await?;
        Ok(one)
    }

    /// What is below.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The name that the client asked for (RFC 6066 3).
    pub fn server_name(&self) -> Option<&str> {
        match &self.session {
            Connection::Server(session) => session.server_name(),
            Connection::Client(_) => None,
        }
    }

    /// Whether both sides chose HTTP/2 (RFC 7301).
    pub fn is_http2(&self) -> bool {
        self.session.alpn_protocol() == Some(b"h2")
    }

    fn poll_handshake(&mut self) -> Poll<io::Result<()>> {
        while self.session.is_handshaking() {
            let flushed = self.poll_flush()?;
            if !self.session.wants_read() {
                ready!(flushed);
                continue;
            }
            if ready!(self.poll_receive())? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        self.poll_flush()
    }

    /// Takes records from the socket into the session; 0 at the end of the stream.
    fn poll_receive(&mut self) -> Poll<io::Result<usize>> {
        if self.incoming.is_empty() {
            loop {
                ready!(self.stream.source().poll_readable());
                self.incoming.reserve(READ_BYTES);
                if self.stream.try_read(&mut self.incoming)?.is_some() {
                    break;
                }
                self.incoming = Vec::new();
            }
        }
        let taken = self.session.read_tls(&mut &self.incoming[..])?;
        self.incoming.drain(..taken);
        if let Err(error) = self.session.process_new_packets() {
            return Poll::Ready(Err(self.fail(error)));
        }
        Poll::Ready(Ok(taken))
    }

    /// Ends a session in which nothing can be believed any more: the alert that says why is the last
    /// that is sent, and no `close_notify` follows it (RFC 8446 6.2).
    fn fail(&mut self, error: rustls::Error) -> io::Error {
        without_budget(|| {
            let _ = self.poll_flush();
            // What is left unread when the socket is closed would destroy the alert on its way.
            let mut unread = Vec::with_capacity(READ_BYTES);
            let _ = self.stream.try_read(&mut unread);
        });
        self.has_failed = true;
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    /// Whether a read would not wait.
    pub fn poll_readable(&mut self) -> Poll<()> {
        let is_waiting = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let has_news = !self.session.reader().fill_buf().is_err_and(|error| is_waiting(&error));
        if has_news || !self.incoming.is_empty() {
            return Poll::Ready(());
        }
        self.stream.source().poll_readable()
    }

    /// Appends what there is; 0 is the end that the peer announced.
    pub fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        loop {
            let mut plain = self.session.reader();
            match plain.fill_buf() {
                Ok(bytes) => {
                    let count = bytes.len();
                    out.extend_from_slice(bytes);
                    plain.consume(count);
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            let _ = ready!(self.poll_receive())?;
            // Answers to the peer's key updates and alerts.
            let _ = self.poll_flush()?;
        }
    }

    /// Takes data to send, as much as there is room for.
    pub fn poll_write(&mut self, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.has_failed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        // What was taken before goes first, so that the session's buffer stays bounded.
        ready!(self.poll_flush())?;
        let taken = self.session.writer().write_vectored(slices)?;
        let _ = self.poll_flush()?;
        Poll::Ready(Ok(taken))
    }

    /// Hands everything over to the socket.
    pub fn poll_flush(&mut self) -> Poll<io::Result<()>> {
        loop {
            while self.session.wants_write() {
                self.session.write_tls(&mut self.outgoing)?;
            }
            if self.outgoing.is_empty() {
                self.outgoing = Vec::new();
                return Poll::Ready(Ok(()));
            }
            match self.stream.try_write(&[IoSlice::new(&self.outgoing)])? {
                Some(count) => drop(self.outgoing.drain(..count)),
                None => ready!(self.stream.source().poll_writable()),
            }
        }
    }

    /// Says that nothing more will be sent, as far as the socket takes it at once.
    pub fn close(&mut self) {
        if !self.has_failed {
            self.session.send_close_notify();
        }
        // There is no later turn for it.
        let _ = without_budget(|| self.poll_flush());
    }

    /// Has the session end without a word, so that the peer knows that something is missing.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_abandoned {
            self.close();
        }
    }
}
