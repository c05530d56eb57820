//! TCP and Unix stream sockets of the event loop.
//!
//! Used by the listeners and connections of the gateway. Reads append to a buffer; writes are tried
//! at once and wait only while the socket is full. Invariants: for a task that has spent its budget
//! every stream would block until the task's next turn; a read has room, because one without looks
//! like the end of the stream.

use crate::budget;
use crate::reactor::share_turn;
use crate::source::Source;
use crate::sources::Interest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, sockopt};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

/// The peer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A TCP client.
    Tcp(SocketAddr),
    /// A client of a Unix socket.
    Unix,
}

/// A connection that a [`Listener`] has accepted.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: Stream,
    /// The peer.
    pub peer: Peer,
}

/// What a connection takes: its task, its place in epoll, its end.
const CONNECTION_BYTES: usize = 16 * 1024;

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    source: Source,
}

impl Listener {
    /// Watches a bound and listening socket; makes it non-blocking.
    ///
    /// # Errors
    /// `ioctl(FIONBIO)` or `epoll_ctl(2)` fails.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        Self::watch(socket, Interest::Read)
    }

    /// The same for a duplicate of a socket that other loops accept from as well: a connection wakes one of
    /// them, or a few.
    ///
    /// # Errors
    /// As [`Listener::new`].
    pub fn shared(socket: OwnedFd) -> io::Result<Self> {
        Self::watch(socket, Interest::ReadExclusive)
    }

    fn watch(socket: OwnedFd, interest: Interest) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { source: Source::new(socket, interest)? })
    }

    /// Waits for a connection; of many that wait, a few are accepted a turn.
    ///
    /// # Errors
    /// `accept4(2)` fails, for example with `EMFILE`. A connection that was closed before it was
    /// accepted is skipped.
    pub async fn accept(&self) -> io::Result<Accepted> {
        share_turn(CONNECTION_BYTES).await;
        loop {
            if let Some(accepted) = self.try_accept()? {
                return Ok(accepted);
            }
            self.source.clear_readable();
            self.source.readable().await;
        }
    }

    /// Accepts a connection if one waits.
    ///
    /// # Errors
    /// As [`Listener::accept`].
    pub fn try_accept(&self) -> io::Result<Option<Accepted>> {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match net::acceptfrom_with(&self.source, flags) {
                Ok((socket, address)) => return Accepted::new(socket, address).map(Some),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Listener {
    /// Whether a connection can be accepted, as the kernel says now; the current task is woken when
    /// one comes.
    pub fn poll_incoming(&self) -> Poll<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_there = poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&now));
        if is_there == Ok(1) {
            return Poll::Ready(());
        }
        // What is known may be of one that was accepted since.
        self.source.clear_readable();
        self.source.poll_readable()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl Accepted {
    fn new(socket: OwnedFd, address: Option<net::SocketAddrAny>) -> io::Result<Self> {
        let peer = address
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map_or(Peer::Unix, Peer::Tcp);
        if matches!(peer, Peer::Tcp(_)) {
            // Responses are written whole, so Nagle's algorithm would only delay their last
            // segment.
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        Ok(Self { stream: Stream::new(socket)?, peer })
    }
}

/// A connected socket.
#[derive(Debug)]
pub struct Stream {
    source: Source,
    /// Whether another process may have it as well, so that a close alone would not end the connection.
    is_shared: Cell<bool>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_shared.get() {
            let _ = net::shutdown(&self.source, net::Shutdown::Both);
        }
    }
}

impl Stream {
    /// Watches a connected, non-blocking socket.
    ///
    /// # Errors
    /// `epoll_ctl(2)` fails.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { source: Source::new(socket, Interest::Read)?, is_shared: Cell::new(false) })
    }

    /// Another process gets the socket: when this is dropped, the connection ends for both.
    pub fn share(&self) {
        self.is_shared.set(true);
    }

    /// The socket, for the event loop of another thread. This one watches it no more.
    pub fn into_socket(self) -> OwnedFd {
        debug_assert!(!self.is_shared.get(), "another process has the socket as well");
        let socket = self.source.descriptor();
        drop(self);
        Rc::into_inner(socket).expect("the loop has forgotten it")
    }

    /// The source, to poll it together with other conditions.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Waits for data and appends it, up to the spare capacity of the buffer, which must not be
    /// zero. 0 at the end of the stream.
    ///
    /// # Errors
    /// What `read(2)` reports.
    pub async fn read(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            self.source.readable().await;
            if let Some(count) = self.try_read(buffer)? {
                return Ok(count);
            }
        }
    }

    /// Appends available data; `None` if a read would block.
    ///
    /// # Errors
    /// What `read(2)` reports.
    pub fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        if budget::is_spent() {
            return Ok(None);
        }
        let room = buffer.capacity() - buffer.len();
        debug_assert!(room > 0, "a read without room looks like the end of the stream");
        loop {
            match rustix::io::read(&self.source, rustix::buffer::spare_capacity(buffer)) {
                Ok(count) => {
                    budget::spend(count);
                    if count < room {
                        self.source.clear_readable();
                    }
                    return Ok(Some(count));
                }
                Err(Errno::AGAIN) => {
                    self.source.clear_readable();
                    return Ok(None);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes all of `slices`, waiting when the socket is full.
    ///
    /// # Errors
    /// `writev(2)` fails; never `WriteZero`.
    pub async fn write_all(&self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        // Empty slices are removed, so that an empty list means that all is written.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.try_write(slices)? {
                Some(count) => IoSlice::advance_slices(&mut slices, count),
                None => self.source.writable().await,
            }
        }
        Ok(())
    }

    /// Writes as much as the socket accepts; `None` if it is full.
    ///
    /// # Errors
    /// What `writev(2)` reports.
    pub fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        if budget::is_spent() {
            return Ok(None);
        }
        loop {
            let written = match slices {
                [one] => net::send(&self.source, one, net::SendFlags::NOSIGNAL),
                many => net::sendmsg(
                    &self.source,
                    many,
                    &mut net::SendAncillaryBuffer::default(),
                    net::SendFlags::NOSIGNAL,
                ),
            };
            match written {
                Ok(count) => {
                    budget::spend(count);
                    return Ok(Some(count));
                }
                Err(Errno::AGAIN) => {
                    self.source.clear_writable();
                    return Ok(None);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends up to `len` bytes of `file` from `offset`; `None` if the socket is full, 0 if the file
    /// is shorter by now.
    ///
    /// # Errors
    /// What `sendfile(2)` reports.
    pub fn try_send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        len: usize,
    ) -> io::Result<Option<usize>> {
        if budget::is_spent() {
            return Ok(None);
        }
        loop {
            let len = len.min(budget::left());
            match rustix::fs::sendfile(&self.source, file, Some(offset), len) {
                Ok(count) => {
                    budget::spend(count);
                    return Ok(Some(count));
                }
                Err(Errno::AGAIN) => {
                    self.source.clear_writable();
                    return Ok(None);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Shuts down the sending side (`shutdown(SHUT_WR)`); the peer may have disconnected.
    pub fn shutdown_write(&self) {
        let _ = net::shutdown(&self.source, net::Shutdown::Write);
    }

    /// The local address of the connection; `None` for Unix sockets.
    pub fn local_address(&self) -> Option<SocketAddr> {
        net::getsockname(&self.source).ok().and_then(|address| SocketAddr::try_from(address).ok())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

#[cfg(test)]
mod tests;
