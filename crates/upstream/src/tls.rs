//! TLS over a stream of the loop (RFC 8446), by rustls.
//!
//! [`Tls`] is one session; [`Sessions`] keeps the settings of all of them, made once for each way
//! of calling. Invariants: an end of the stream without the peer's `close_notify` is an error and
//! never an end of data; certificates are checked unless the call says otherwise.

use crate::error::{Error, Kind};
use outboard_reactor::{Stream, blocking};
use outboard_tls::Trust;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::cell::RefCell;
use std::io::{self, BufRead, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

/// Room for a read of records.
const READ_BYTES: usize = 16 * 1024 + 512;

/// How a call wants its TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) verify: bool,
    pub(crate) http2: bool,
}

/// Settings by wish, made when first needed: reading the system's certificates takes a while.
#[derive(Debug)]
pub(crate) struct Sessions {
    ca_file: Option<PathBuf>,
    made: RefCell<Vec<(Wish, Arc<ClientConfig>)>>,
}

impl Sessions {
    pub(crate) fn new(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, made: RefCell::default() }
    }

    async fn settings(&self, wish: Wish) -> Result<Arc<ClientConfig>, Error> {
        if let Some((_, known)) = self.made.borrow().iter().find(|(theirs, _)| *theirs == wish) {
            return Ok(known.clone());
        }
        let ca_file = self.ca_file.clone();
        let made = blocking(move || make(wish, ca_file.as_deref())).await;
        let made = Arc::new(made.map_err(|why| Error::new(Kind::Tls, why))?);
        self.made.borrow_mut().push((wish, made.clone()));
        Ok(made)
    }

    /// Begins a session and shakes hands.
    pub(crate) async fn connect(
        &self,
        stream: Stream,
        host: &str,
        wish: Wish,
    ) -> Result<Tls, Error> {
        let settings = self.settings(wish).await?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Error::new(Kind::Tls, format!("{host}: {error}")))?;
        let session = ClientConnection::new(settings, name)
            .map_err(|error| Error::new(Kind::Tls, format!("{host}: {error}")))?;
        let mut tls = Tls { stream, session, incoming: Vec::new(), outgoing: Vec::new() };
        std::future::poll_fn(|_| tls.poll_handshake())
            .await
            .map_err(|error| Error::new(Kind::Tls, format!("no TLS with {host}: {error}")))?;
        Ok(tls)
    }
}

fn make(wish: Wish, ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let trust = if wish.verify { Trust::Authorities(ca_file) } else { Trust::Anyone };
    let protocols: &[&[u8]] = if wish.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    outboard_tls::client_settings(trust, protocols)
        .map_err(|why| format!("{why} (see upstream.ca)"))
}

/// One session over one connection.
#[derive(Debug)]
pub(crate) struct Tls {
    stream: Stream,
    session: ClientConnection,
    /// Records that came and that the session has not taken yet.
    incoming: Vec<u8>,
    /// Records that the socket has not taken yet.
    outgoing: Vec<u8>,
}

impl Tls {
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether the peer chose HTTP/2 (RFC 7301).
    pub(crate) fn is_http2(&self) -> bool {
        self.session.alpn_protocol() == Some(b"h2")
    }

    fn poll_handshake(&mut self) -> Poll<io::Result<()>> {
        while self.session.is_handshaking() {
            let flushed = self.poll_flush()?;
            if !self.session.wants_read() {
                std::task::ready!(flushed);
                continue;
            }
            if std::task::ready!(self.poll_receive())? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        self.poll_flush()
    }

    /// Takes records from the socket into the session; 0 at the end of the stream.
    fn poll_receive(&mut self) -> Poll<io::Result<usize>> {
        if self.incoming.is_empty() {
            loop {
                std::task::ready!(self.stream.source().poll_readable());
                self.incoming.reserve(READ_BYTES);
                if self.stream.try_read(&mut self.incoming)?.is_some() {
                    break;
                }
            }
        }
        let taken = self.session.read_tls(&mut &self.incoming[..])?;
        self.incoming.drain(..taken);
        self.session
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Poll::Ready(Ok(taken))
    }

    /// Appends what there is; 0 is the end that the peer announced.
    pub(crate) fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
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
            let _ = std::task::ready!(self.poll_receive())?;
            // Answers to the peer's key updates and alerts.
            let _ = self.poll_flush()?;
        }
    }

    /// Takes data to send, as much as there is room for.
    pub(crate) fn poll_write(&mut self, data: &[u8]) -> Poll<io::Result<usize>> {
        // What was taken before goes first, so that the session's buffer stays bounded.
        std::task::ready!(self.poll_flush())?;
        let taken = self.session.writer().write(data)?;
        let _ = self.poll_flush()?;
        Poll::Ready(Ok(taken))
    }

    /// Hands everything over to the socket.
    pub(crate) fn poll_flush(&mut self) -> Poll<io::Result<()>> {
        loop {
            while self.session.wants_write() {
                self.session.write_tls(&mut self.outgoing)?;
            }
            if self.outgoing.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match self.stream.try_write(&[IoSlice::new(&self.outgoing)])? {
                Some(count) => drop(self.outgoing.drain(..count)),
                None => std::task::ready!(self.stream.source().poll_writable()),
            }
        }
    }

    /// Says that nothing more will be sent, as far as the socket takes it at once.
    pub(crate) fn close(&mut self) {
        self.session.send_close_notify();
        let _ = self.poll_flush();
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.close();
    }
}
