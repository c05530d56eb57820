//! [`Transport`]: the byte stream of a client's connection: a socket or TLS; or of one of its requests,
//! where it has many at a time.
//!
//! Created by the listener, used by the connection and by upgrade handlers. Invariant: written bytes have
//! been passed to the socket, or are in the bounded buffer of a stream; a write that returns `None` is
//! repeated with the same bytes.

#[cfg(any(test, feature = "testing"))]
pub(crate) mod pipe;

use crate::message_stream::MessageStream;
use crate::pace::Pace;
use outboard_log::Reason;
use outboard_reactor::Stream;
use outboard_tls::Session;
#[cfg(any(test, feature = "testing"))]
use pipe::Pipe;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt::{set_socket_keepalive, set_socket_linger, set_tcp_nodelay};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Poll, ready};
use std::time::Duration;

/// Bytes of a file that are encrypted at once.
const FILE_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub enum Transport {
    /// A socket.
    Plain(Stream),
    /// A TLS session.
    Tls(Box<Encrypted>),
    /// A request and its response, on a connection of HTTP/2: the bytes are those of the bodies.
    Message(Box<dyn MessageStream>),
    /// One end of a connection within the event loop, for tests.
    #[cfg(any(test, feature = "testing"))]
    Pipe(Box<Pipe>),
}

/// A session, and the length of a write that it has encrypted and not yet sent.
#[derive(Debug)]
pub struct Encrypted {
    session: RefCell<Session>,
    taken: RefCell<usize>,
}

impl Transport {
    pub(crate) fn encrypted(session: Session) -> Self {
        Self::Tls(Box::new(Encrypted { session: RefCell::new(session), taken: RefCell::default() }))
    }

    /// One end of a connection within the event loop.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn pipe(pipe: Pipe) -> Self {
        Self::Pipe(Box::new(pipe))
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(_) => true,
            Self::Message(stream) => stream.is_encrypted(),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(_) => false,
        }
    }

    /// Whether the client's handshake is not complete: what was received may be a replay (RFC 8446 8).
    pub(crate) fn is_early(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.session.borrow().is_early())
    }

    /// Waits until the client's handshake is complete.
    pub(crate) fn poll_handshake(&self) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(tls) => tls.session.borrow_mut().poll_handshake(),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// The stream of a request on a connection that has many.
    pub(crate) fn message(&self) -> Option<&dyn MessageStream> {
        match self {
            Self::Message(stream) => Some(&**stream),
            _ => None,
        }
    }

    /// Whether a read would not wait; the current task is woken when that changes.
    pub(crate) fn poll_readable(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_readable(),
            Self::Tls(tls) => tls.session.borrow_mut().poll_readable(),
            Self::Message(stream) => stream.poll_readable(),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => pipe.poll_readable(),
        }
    }

    /// Whether a write would not wait.
    pub(crate) fn poll_writable(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_writable(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_writable(),
            Self::Message(stream) => stream.poll_writable(),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => pipe.poll_writable(),
        }
    }

    /// Whether a read or a write would not wait.
    pub(crate) fn poll_readable_or_writable(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_readable_or_writable(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_readable_or_writable(),
            _ => match self.poll_readable() {
                Poll::Pending => self.poll_writable(),
                ready => ready,
            },
        }
    }

    /// Has the kernel collect small pieces.
    pub(crate) fn set_delay(&self) {
        // A Unix socket has no such option.
        let _ = match self {
            Self::Plain(stream) => set_tcp_nodelay(stream.as_fd(), false),
            Self::Tls(tls) => set_tcp_nodelay(tls.session.borrow().stream().as_fd(), false),
            _ => Ok(()),
        };
    }

    /// Has the peer receive a reset when it is closed.
    pub(crate) fn reset(&self) {
        let now = Some(Duration::ZERO);
        // The peer then receives the end of the stream.
        let _ = match self {
            Self::Plain(stream) => set_socket_linger(stream.as_fd(), now),
            Self::Tls(tls) => set_socket_linger(tls.session.borrow().stream().as_fd(), now),
            _ => Ok(()),
        };
    }

    /// Whether the peer has closed its side.
    pub fn poll_hangup(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_hangup(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_hangup(),
            Self::Message(stream) => stream.poll_gone(),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => pipe.poll_hangup(),
        }
    }

    /// Whether nothing can be written to the peer any more.
    pub(crate) fn poll_gone(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_gone(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_gone(),
            Self::Message(stream) => stream.poll_gone(),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => pipe.poll_hangup(),
        }
    }

    /// Waits until a write would not.
    pub(crate) async fn writable(&self) {
        std::future::poll_fn(|_| self.poll_writable()).await;
    }

    /// Appends available bytes; `None` if a read would wait, 0 at the end.
    ///
    /// # Errors
    /// Errors of `read(2)`, and violations of TLS.
    pub(crate) fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        match self {
            Self::Plain(stream) => stream.try_read(buffer),
            Self::Tls(tls) => now(tls.session.borrow_mut().poll_read(buffer)),
            Self::Message(stream) => stream.try_read(buffer),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => {
                let read = pipe.try_read(buffer);
                pipe.release();
                Ok(read)
            }
        }
    }

    /// Writes what the socket accepts; `None` if the same is to be written again later.
    ///
    /// # Errors
    /// Errors of `writev(2)`.
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        match self {
            Self::Plain(stream) => stream.try_write(slices),
            Self::Tls(tls) => now(tls.poll_write(slices)),
            Self::Message(stream) => stream.try_write(slices),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => pipe.try_write(slices),
        }
    }

    /// Sends up to `len` bytes of `file` from `offset`, like [`Transport::try_write`]. 0: the file became
    /// shorter.
    ///
    /// # Errors
    /// Errors of `sendfile(2)` or `pread(2)`.
    pub(crate) fn try_send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        len: usize,
    ) -> io::Result<Option<usize>> {
        let (is_taken, most) = match self {
            Self::Plain(stream) => return stream.try_send_file(file, offset, len),
            Self::Tls(tls) => (*tls.taken.borrow() > 0, FILE_BYTES),
            Self::Message(stream) => match stream.free_bytes() {
                // Full, or closed.
                0 => return stream.try_write(&[]),
                free_bytes => (false, free_bytes.min(FILE_BYTES)),
            },
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => match pipe.free_bytes() {
                0 => return pipe.try_write(&[]),
                free_bytes => (false, free_bytes),
            },
        };
        let mut bytes = Vec::new();
        if !is_taken {
            bytes.reserve_exact(len.min(most));
            rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), *offset)?;
            if bytes.is_empty() {
                return Ok(Some(0));
            }
        }
        let written = self.try_write(&[IoSlice::new(&bytes)])?;
        *offset += written.unwrap_or(0) as u64;
        Ok(written)
    }

    /// Writes everything, as long as the client reads fast enough.
    ///
    /// # Errors
    /// The client is gone or too slow.
    pub(crate) async fn write_all(
        &self,
        mut slices: &mut [IoSlice<'_>],
        pace: &mut Pace,
    ) -> Result<(), Reason> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.try_write(slices) {
                Ok(Some(count)) => {
                    pace.count(count);
                    IoSlice::advance_slices(&mut slices, count);
                }
                Ok(None) => {
                    pace.wait(self.writable()).await.map_err(|_| Reason::WriteTimeout)?;
                }
                Err(_) => return Err(Reason::ClientGone),
            }
        }
        Ok(())
    }

    /// Closes the sending side; the peer may be gone already.
    pub(crate) fn shutdown_write(&self) {
        match self {
            Self::Plain(stream) => stream.shutdown_write(),
            Self::Tls(tls) => {
                tls.session.borrow_mut().close();
                tls.session.borrow().stream().shutdown_write();
            }
            Self::Message(stream) => stream.end(),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(pipe) => pipe.end(),
        }
    }

    /// Makes the peer notice that the response is incomplete.
    pub(crate) fn abandon(&self) {
        match self {
            Self::Tls(tls) => tls.session.borrow_mut().abandon(),
            Self::Message(stream) => stream.reset(),
            _ => {}
        }
    }

    /// The address that the client connected to; `None` for Unix sockets.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Plain(stream) => stream.local_address(),
            Self::Tls(tls) => tls.session.borrow().stream().local_address(),
            Self::Message(stream) => stream.local_address(),
            #[cfg(any(test, feature = "testing"))]
            Self::Pipe(_) => None,
        }
    }

    /// Enables TCP keep-alive, so that a peer that vanished is noticed.
    pub(crate) fn keep_alive(&self) {
        // Without it the connection is only freed later.
        let _ = match self {
            Self::Plain(stream) => set_socket_keepalive(stream.as_fd(), true),
            Self::Tls(tls) => set_socket_keepalive(tls.session.borrow().stream().as_fd(), true),
            _ => Ok(()),
        };
    }
}

impl Encrypted {
    /// Encrypted bytes count as written once the socket has all of them.
    fn poll_write(&self, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let (mut session, mut taken) = (self.session.borrow_mut(), self.taken.borrow_mut());
        if *taken == 0 {
            *taken = ready!(session.poll_write(slices))?;
        }
        ready!(session.poll_flush())?;
        Poll::Ready(Ok(std::mem::take(&mut *taken)))
    }
}

/// The result of a poll without waiting.
fn now<T>(poll: Poll<io::Result<T>>) -> io::Result<Option<T>> {
    match poll {
        Poll::Ready(outcome) => outcome.map(Some),
        Poll::Pending => Ok(None),
    }
}

#[cfg(test)]
mod tests;
