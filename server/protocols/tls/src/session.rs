//! [`Session`]: TLS over one stream of the event loop, as client or server.
//!
//! Owned by one connection; every method polls for the current task. Invariants: an end of the
//! stream without `close_notify` is an error and never the end of data (RFC 8446 6.1); after an
//! error only the alert is sent; an idle session has no buffers.

use crate::issued::CHALLENGE_PROTOCOL;
use crate::server::ServerSettings;
use crate::session_facts::SessionFacts;
use outboard_reactor::{Stream, without_budget};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConnection};
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::sync::Arc;
use std::task::{Poll, ready};

/// Buffer for one read: a record and its overhead.
const READ_BYTES: usize = 16 * 1024 + 512;

/// One session over one connection.
#[derive(Debug)]
pub struct Session {
    stream: Stream,
    session: Connection,
    /// Received records that the session has not processed.
    incoming: Vec<u8>,
    /// What a client has sent before its handshake is complete, and is not read.
    early: Vec<u8>,
    /// Records that are not written to the socket yet.
    outgoing: Vec<u8>,
    is_abandoned: bool,
    /// Whether the peer broke the protocol.
    has_failed: bool,
}

impl Session {
    /// Connects as a client, including the handshake.
    ///
    /// # Errors
    /// The handshake or the socket fails.
    pub async fn connect(
        stream: Stream,
        settings: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Self> {
        let session = ClientConnection::new(settings, name).map_err(io::Error::other)?;
        Self::begin(stream, session.into(), Vec::new()).await
    }

    /// Accepts a client, including the handshake, or its part before early data.
    ///
    /// # Errors
    /// As [`Session::connect`], or the client's certificate is not valid any more.
    pub async fn accept(
        stream: Stream,
        settings: &ServerSettings,
    ) -> io::Result<(Self, SessionFacts)> {
        Self::accept_received(stream, Vec::new(), settings).await
    }

    /// The same, when the caller has read these first bytes.
    ///
    /// # Errors
    /// As [`Session::accept`].
    pub async fn accept_received(
        stream: Stream,
        received: Vec<u8>,
        settings: &ServerSettings,
    ) -> io::Result<(Self, SessionFacts)> {
        let session = ServerConnection::new(settings.rustls.clone()).map_err(io::Error::other)?;
        let this = Self::begin(stream, session.into(), received).await?;
        let Connection::Server(session) = &this.session else {
            return Err(io::Error::other("a client's session"));
        };
        let facts = SessionFacts::of(session, settings)?;
        Ok((this, facts))
    }

    async fn begin(stream: Stream, session: Connection, incoming: Vec<u8>) -> io::Result<Self> {
        let mut this = Self {
            stream,
            session,
            incoming,
            early: Vec::new(),
            outgoing: Vec::new(),
            is_abandoned: false,
            has_failed: false,
        };
        std::future::poll_fn(|_| this.poll_begun()).await?;
        Ok(this)
    }

    /// The stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether HTTP/2 was negotiated (RFC 7301).
    pub fn is_http2(&self) -> bool {
        self.session.alpn_protocol() == Some(b"h2")
    }

    /// Whether the peer is an authority that has checked a name in the handshake (RFC 8737): no data
    /// follows.
    pub fn is_challenge(&self) -> bool {
        self.session.alpn_protocol() == Some(CHALLENGE_PROTOCOL)
    }

    /// Whether the handshake is not complete, of a client that sends early data: what was received may be a
    /// replay (RFC 8446 8).
    pub fn is_early(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Waits until the handshake is complete.
    ///
    /// # Errors
    /// It fails, or the client is gone.
    pub fn poll_handshake(&mut self) -> Poll<io::Result<()>> {
        self.poll_until(|session| !session.is_handshaking())
    }

    /// The same, or until early data is accepted: both sides have then chosen everything.
    fn poll_begun(&mut self) -> Poll<io::Result<()>> {
        self.poll_until(|session| match session {
            Connection::Server(server) => server.early_data().is_some() || !server.is_handshaking(),
            Connection::Client(client) => !client.is_handshaking(),
        })
    }

    fn poll_until(&mut self, is_reached: impl Fn(&mut Connection) -> bool) -> Poll<io::Result<()>> {
        while !is_reached(&mut self.session) {
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

    /// Reads records from the socket into the session; 0 at the end of the stream.
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
        if let Connection::Server(server) = &mut self.session
            && let Some(mut early) = server.early_data()
        {
            early.read_to_end(&mut self.early)?;
        }
        Poll::Ready(Ok(taken))
    }

    /// Ends the session after a protocol error. The alert is the last message; no `close_notify`
    /// follows it (RFC 8446 6.2).
    fn fail(&mut self, error: rustls::Error) -> io::Error {
        without_budget(|| {
            let _ = self.poll_flush();
            // Closing a socket with unread data sends a reset, which would destroy the alert.
            let mut unread = Vec::with_capacity(READ_BYTES);
            let _ = self.stream.try_read(&mut unread);
        });
        self.has_failed = true;
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    /// Whether a read would return at once.
    pub fn poll_readable(&mut self) -> Poll<()> {
        let is_waiting = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let has_plaintext =
            !self.session.reader().fill_buf().is_err_and(|error| is_waiting(&error));
        if has_plaintext || !self.incoming.is_empty() || !self.early.is_empty() {
            return Poll::Ready(());
        }
        self.stream.source().poll_readable()
    }

    /// Appends received data; 0 at the end that the peer announced.
    pub fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if !self.early.is_empty() {
            let count = self.early.len();
            out.append(&mut self.early);
            self.early = Vec::new();
            return Poll::Ready(Ok(count));
        }
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
            // Responses to key updates and alerts.
            let _ = self.poll_flush()?;
        }
    }

    /// Accepts data to send, as much as there is room for.
    pub fn poll_write(&mut self, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.has_failed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        // Earlier data is flushed first, so that the buffer of the session stays bounded.
        ready!(self.poll_flush())?;
        let taken = self.session.writer().write_vectored(slices)?;
        let _ = self.poll_flush()?;
        Poll::Ready(Ok(taken))
    }

    /// Accepts data to send. Its records are written to the socket by the next flush, or once there are
    /// `batch_bytes` of them.
    pub(crate) fn poll_write_batched(
        &mut self,
        slices: &[IoSlice<'_>],
        batch_bytes: usize,
    ) -> Poll<io::Result<usize>> {
        if self.has_failed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.outgoing.len() >= batch_bytes {
            ready!(self.poll_flush())?;
        }
        let taken = self.session.writer().write_vectored(slices)?;
        self.collect_records()?;
        Poll::Ready(Ok(taken))
    }

    fn collect_records(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.outgoing)?;
        }
        Ok(())
    }

    /// Writes all buffered records to the socket.
    pub fn poll_flush(&mut self) -> Poll<io::Result<()>> {
        loop {
            self.collect_records()?;
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

    /// Sends `close_notify`, as far as the socket accepts it at once.
    pub fn close(&mut self) {
        if !self.has_failed {
            self.session.send_close_notify();
        }
        // There is no later turn for it.
        let _ = without_budget(|| self.poll_flush());
    }

    /// Makes the session end without `close_notify`, so that the peer detects truncation.
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
