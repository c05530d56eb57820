//! [`Transport`]: the byte stream of a client's connection: a socket, TLS, or an HTTP/2 stream.
//!
//! Created by the listener, used by the connection and by upgrade handlers. Invariant: written bytes have
//! been passed to the socket; a write that returns `None` is repeated with the same bytes.

pub(crate) mod pipe;

use crate::pace::Pace;
use outboard_log::Reason;
use outboard_reactor::Stream;
use outboard_tls::Session;
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
    /// A stream of an HTTP/2 connection.
    Http2(Box<Piped>),
}

/// A stream of an HTTP/2 connection.
#[derive(Debug)]
pub struct Piped {
    pipe: Pipe,
    local: Option<SocketAddr>,
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

    /// An HTTP/2 stream of a connection to this address.
    pub(crate) fn http2(pipe: Pipe, local: Option<SocketAddr>) -> Self {
        Self::Http2(Box::new(Piped { pipe, local }))
    }

    /// HTTP/2 requires TLS here.
    pub fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }

    /// Whether it is an HTTP/2 stream.
    pub fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Whether a read would not wait; the current task is woken when that changes.
    pub(crate) fn poll_readable(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_readable(),
            Self::Tls(tls) => tls.session.borrow_mut().poll_readable(),
            Self::Http2(stream) => stream.pipe.poll_readable(),
        }
    }

    /// Whether a write would not wait.
    pub(crate) fn poll_writable(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_writable(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_writable(),
            Self::Http2(stream) => stream.pipe.poll_writable(),
        }
    }

    /// Whether a read or a write would not wait.
    pub(crate) fn poll_readable_or_writable(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_readable_or_writable(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_readable_or_writable(),
            Self::Http2(stream) => match stream.pipe.poll_readable() {
                Poll::Pending => stream.pipe.poll_writable(),
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
            Self::Http2(_) => Ok(()),
        };
    }

    /// Has the peer receive a reset when it is closed.
    pub(crate) fn reset(&self) {
        let now = Some(Duration::ZERO);
        // The peer then receives the end of the stream.
        let _ = match self {
            Self::Plain(stream) => set_socket_linger(stream.as_fd(), now),
            Self::Tls(tls) => set_socket_linger(tls.session.borrow().stream().as_fd(), now),
            Self::Http2(_) => Ok(()),
        };
    }

    /// Whether the peer has closed its side.
    pub fn poll_hangup(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_hangup(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_hangup(),
            Self::Http2(stream) => stream.pipe.poll_hangup(),
        }
    }

    /// Whether nothing can be written to the peer any more.
    pub(crate) fn poll_gone(&self) -> Poll<()> {
        match self {
            Self::Plain(stream) => stream.source().poll_gone(),
            Self::Tls(tls) => tls.session.borrow().stream().source().poll_gone(),
            Self::Http2(stream) => stream.pipe.poll_hangup(),
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
            Self::Http2(stream) => {
                let read = stream.pipe.try_read(buffer);
                stream.pipe.release();
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
            Self::Http2(stream) => stream.pipe.try_write(slices),
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
            Self::Http2(stream) => match stream.pipe.free_bytes() {
                // Full, or closed by its reader.
                0 => return stream.pipe.try_write(&[]),
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
            Self::Http2(stream) => stream.pipe.end(),
        }
    }

    /// Makes the peer notice that the response is incomplete.
    pub(crate) fn abandon(&self) {
        if let Self::Tls(tls) = self {
            tls.session.borrow_mut().abandon();
        }
    }

    /// The address that the client connected to; `None` for Unix sockets.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Plain(stream) => stream.local_address(),
            Self::Tls(tls) => tls.session.borrow().stream().local_address(),
            Self::Http2(stream) => stream.local,
        }
    }

    /// Enables TCP keep-alive, so that a peer that vanished is noticed.
    pub(crate) fn keep_alive(&self) {
        // Without it the connection is only freed later.
        let _ = match self {
            Self::Plain(stream) => set_socket_keepalive(stream.as_fd(), true),
            Self::Tls(tls) => set_socket_keepalive(tls.session.borrow().stream().as_fd(), true),
            Self::Http2(_) => Ok(()),
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
mod tests {
    use super::*;
    use outboard_reactor::run;
    use pipe::INITIAL_BYTES;
    use rustix::fd::AsFd;

    #[test]
    fn a_file_for_a_reset_stream_does_not_wait() {
        run(async {
            let (near, far) = Pipe::pair();
            let (transport, file) =
                (Transport::http2(far, None), std::fs::File::open("/dev/zero").unwrap());
            let mut offset = 0;
            let mut send = || transport.try_send_file(file.as_fd(), &mut offset, 1 << 20);
            assert_eq!(send().unwrap(), Some(INITIAL_BYTES));
            assert_eq!(send().unwrap(), None);
            near.close();
            assert!(send().is_err());
        })
        .unwrap();
    }
}
