//! [`Connection`]: the streams of a client.
//!
//! Passed to the [`crate::Application`] when the client begins it. Invariants: nothing waits; what was
//! written is sent by [`Connection::flush`]; after [`Event::Closed`] no stream can be used.

use outboard_reactor as reactor;
use quinn_proto::{
    ConnectionHandle, Dir, FinishError, ReadError, StreamEvent, StreamId, VarInt, WriteError,
};
use rustls::CipherSuite;
use rustls::pki_types::CertificateDer;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Weak;
use std::task::Poll;
use std::time::Instant;

/// Memory of a read.
const READ_BYTES: usize = 64 << 10;

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// A stream was opened, or has data, its end or a reset.
    Readable(u64),
    /// A stream accepts data again.
    Writable(u64),
    /// The client does not read a stream of this side, by an error code of the application.
    Stopped(u64, u64),
    /// Everything that was sent on a stream has arrived.
    Finished(u64),
    /// The connection is gone; the reason.
    Closed(String),
}

/// What follows what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Perhaps more; if nothing was read, nothing is there now.
    Open,
    /// The end of the stream.
    End,
    /// Nothing: the client has reset the stream, by an error code of the application.
    Reset(u64),
    /// Nothing: the stream was read to its end, was reset, or is not read any more.
    Closed,
}

/// What the handshake has negotiated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The application protocol (RFC 7301).
    pub protocol: Vec<u8>,
    /// The server name that the client has sent (RFC 6066 3).
    pub server_name: Option<String>,
    /// The cipher suite.
    pub cipher: Option<CipherSuite>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// The client's certificate and those of intermediate authorities.
    pub client_chain: Vec<CertificateDer<'static>>,
}

/// A stream is closed: nothing can be sent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamClosed;

impl fmt::Display for StreamClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stream is closed")
    }
}

impl std::error::Error for StreamClosed {}

/// The endpoint of a connection.
pub(crate) trait Flush {
    /// Sends what the application has written.
    fn flush(&self, connection: ConnectionHandle);
}

/// See the module.
pub struct Connection {
    endpoint: Weak<dyn Flush>,
    pub(crate) handle: ConnectionHandle,
    pub(crate) inner: RefCell<quinn_proto::Connection>,
    pub(crate) changed: reactor::Event,
    /// Whether it is in the endpoint's list of connections that have something to send.
    pub(crate) is_ready: Cell<bool>,
    /// Whether it counts as a handshake that is not complete.
    pub(crate) is_handshaking: Cell<bool>,
    local: SocketAddr,
    has_proven_address: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(
        endpoint: Weak<dyn Flush>,
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        local: SocketAddr,
        has_proven_address: bool,
    ) -> Self {
        Self {
            endpoint,
            handle,
            inner: RefCell::new(inner),
            changed: reactor::Event::default(),
            is_ready: Cell::new(false),
            is_handshaking: Cell::new(true),
            local,
            has_proven_address,
        }
    }

    /// Whether a token has proven the client's address before the handshake, which proves it as well (RFC 9000 8.1).
    pub fn has_proven_address(&self) -> bool {
        self.has_proven_address
    }

    /// Whether there may be events; the current task is woken when there are.
    pub fn poll_changed(&self) -> Poll<()> {
        self.changed.poll()
    }

    /// Wakes the task that waits for events.
    pub fn wake(&self) {
        self.changed.set();
    }

    /// The next event.
    pub fn next_event(&self) -> Option<Event> {
        let mut inner = self.inner.borrow_mut();
        loop {
            for dir in [Dir::Bi, Dir::Uni] {
                if let Some(id) = inner.streams().accept(dir) {
                    return Some(Event::Readable(id.into()));
                }
            }
            return Some(match inner.poll()? {
                quinn_proto::Event::Connected => Event::Connected,
                quinn_proto::Event::ConnectionLost { reason } => Event::Closed(reason.to_string()),
                quinn_proto::Event::Stream(event) => match event {
                    StreamEvent::Readable { id } => Event::Readable(id.into()),
                    StreamEvent::Writable { id } => Event::Writable(id.into()),
                    StreamEvent::Finished { id } => Event::Finished(id.into()),
                    StreamEvent::Stopped { id, error_code } => {
                        Event::Stopped(id.into(), error_code.into_inner())
                    }
                    StreamEvent::Opened { .. } | StreamEvent::Available { .. } => continue,
                },
                _ => continue,
            });
        }
    }

    /// Appends a part of what has arrived on a stream. The client may send as much again.
    pub fn read(&self, stream_id: u64, out: &mut Vec<u8>) -> Read {
        let mut inner = self.inner.borrow_mut();
        let mut stream = inner.recv_stream(id(stream_id));
        let Ok(mut chunks) = stream.read(true) else { return Read::Closed };
        let start = out.len();
        let outcome = loop {
            let room = READ_BYTES.saturating_sub(out.len() - start);
            if room == 0 {
                break Read::Open;
            }
            match chunks.next(room) {
                Ok(Some(chunk)) => out.extend_from_slice(&chunk.bytes),
                Ok(None) => break Read::End,
                Err(ReadError::Blocked) => break Read::Open,
                Err(ReadError::Reset(code)) => break Read::Reset(code.into_inner()),
            }
        };
        // Permission to send more goes out with the next flush.
        let _ = chunks.finalize();
        outcome
    }

    /// Opens a unidirectional stream of this side; `None` if the client allows no more.
    pub fn open_unidirectional(&self) -> Option<u64> {
        self.inner.borrow_mut().streams().open(Dir::Uni).map(Into::into)
    }

    /// Writes to a stream; how many bytes were accepted, which may be none.
    ///
    /// # Errors
    /// The stream is closed, or the client does not read it.
    pub fn write(&self, stream_id: u64, bytes: &[u8]) -> Result<usize, StreamClosed> {
        match self.inner.borrow_mut().send_stream(id(stream_id)).write(bytes) {
            Ok(count) => Ok(count),
            Err(WriteError::Blocked) => Ok(0),
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => Err(StreamClosed),
        }
    }

    /// Ends a stream after what was written.
    ///
    /// # Errors
    /// The stream is closed, or the client does not read it.
    pub fn finish(&self, stream_id: u64) -> Result<(), StreamClosed> {
        let finished = self.inner.borrow_mut().send_stream(id(stream_id)).finish();
        finished.map_err(|(FinishError::Stopped(_) | FinishError::ClosedStream)| StreamClosed)
    }

    /// Resets the sending part of a stream; nothing happens if it is closed.
    pub fn reset(&self, stream_id: u64, code: u64) {
        let _ = self.inner.borrow_mut().send_stream(id(stream_id)).reset(varint(code));
    }

    /// Reads no more of a stream; nothing happens if it is closed.
    pub fn stop(&self, stream_id: u64, code: u64) {
        let _ = self.inner.borrow_mut().recv_stream(id(stream_id)).stop(varint(code));
    }

    /// What is stored of all streams until the client acknowledges it, and what the client may send on all
    /// streams before it is read. A smaller window than before applies when what exceeds it was consumed.
    pub fn set_windows(&self, send_bytes: u64, receive_bytes: u32) {
        let mut inner = self.inner.borrow_mut();
        inner.set_send_window(send_bytes);
        inner.set_receive_window(receive_bytes.into());
    }

    /// Closes the connection with an error code of the application.
    pub fn close(&self, code: u64, reason: &str) {
        let reason = reason.as_bytes().to_vec().into();
        self.inner.borrow_mut().close(Instant::now(), varint(code), reason);
        self.flush();
    }

    /// Sends what was written, as far as the client and the network allow; the rest follows then.
    pub fn flush(&self) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.flush(self.handle);
        }
    }

    /// Whether the handshake is not complete: what was received may be a replay (RFC 8446 8).
    pub fn is_handshaking(&self) -> bool {
        self.inner.borrow().is_handshaking()
    }

    /// What the handshake has negotiated; nothing before the client's first message was processed.
    pub fn negotiated(&self) -> Negotiated {
        let inner = self.inner.borrow();
        let session = inner.crypto_session();
        let data = session.handshake_data().and_then(|any| any.downcast::<Negotiated>().ok());
        let chain = session.peer_identity();
        let chain = chain.and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
        let negotiated = data.map(|data| *data).unwrap_or_default();
        Negotiated { client_chain: chain.map(|chain| *chain).unwrap_or_default(), ..negotiated }
    }

    /// The client's address, which may change (RFC 9000 9).
    pub fn remote_address(&self) -> SocketAddr {
        self.inner.borrow().remote_address()
    }

    /// The address that the client has sent to.
    pub fn local_address(&self) -> SocketAddr {
        let ip = self.inner.borrow().local_ip();
        ip.map_or(self.local, |ip| SocketAddr::new(ip, self.local.port()))
    }
}

fn id(stream_id: u64) -> StreamId {
    StreamId::from(varint(stream_id))
}

fn varint(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
}
