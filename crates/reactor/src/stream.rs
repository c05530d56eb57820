//! TCP and Unix stream sockets of the loop.
//!
//! Called by the gateway's listeners and connections. Reads append to the caller's buffer, writes
//! are tried at once and wait only when the socket is full. Invariant: a task that has spent its
//! budget finds every stream blocked until its next turn.

use crate::budget;
use crate::reactor::share_turn;
use crate::source::{Interest, Source};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, sockopt};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::Poll;

/// Who is on the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A TCP client.
    Tcp(SocketAddr),
    /// A client of a Unix socket.
    Unix,
}

/// A connection that a [`Listener`] took.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: Stream,
    /// Its other end.
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
    /// What `ioctl(FIONBIO)` and `epoll_ctl(2)` report.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { source: Source::new(socket, Interest::Read)? })
    }

    /// Waits for a connection; of many that wait, a few are accepted a turn.
    ///
    /// # Errors
    /// What `accept4(2)` reports, `EMFILE` for one; errors of the connection itself (it went
    /// before it was accepted) are passed over.
    pub async fn accept(&self) -> io::Result<Accepted> {
        share_turn(CONNECTION_BYTES).await;
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match net::acceptfrom_with(&self.source, flags) {
                Ok((socket, address)) => return Accepted::new(socket, address),
                Err(Errno::AGAIN) => {
                    self.source.clear_readable();
                    self.source.readable().await;
                }
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
            // Answers are written whole; Nagle would only hold the last piece of a large one.
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        Ok(Self { stream: Stream::new(socket)?, peer })
    }
}

/// A connected socket.
#[derive(Debug)]
pub struct Stream {
    source: Source,
}

impl Stream {
    /// Watches a connected, non-blocking socket.
    ///
    /// # Errors
    /// What `epoll_ctl(2)` reports.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { source: Source::new(socket, Interest::Read)? })
    }

    /// The readiness of the socket, to be polled together with other conditions.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Waits for data and appends what there is, up to the buffer's spare capacity (which must
    /// not be zero). 0 is the end of the stream.
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

    /// Appends what there is; `None` when a read would block.
    ///
    /// # Errors
    /// What `read(2)` reports.
    pub fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        if budget::is_spent() {
            return Ok(None);
        }
        let room = buffer.capacity() - buffer.len();
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
    /// What `writev(2)` reports; `WriteZero` never.
    pub async fn write_all(&self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        // Empty slices are skipped, so that "nothing left" is the end.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.try_write(slices)? {
                Some(count) => IoSlice::advance_slices(&mut slices, count),
                None => self.source.writable().await,
            }
        }
        Ok(())
    }

    /// Writes what the socket takes; `None` when it takes nothing now.
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

    /// Sends up to `len` bytes of `file` from `offset`; `None` when the socket is full. 0 means
    /// that the file has become shorter.
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

    /// Ends the sending side (`shutdown(SHUT_WR)`); the peer may be gone already.
    pub fn shutdown_write(&self) {
        let _ = net::shutdown(&self.source, net::Shutdown::Write);
    }

    /// The address that the client connected to; `None` for Unix sockets.
    pub fn local_address(&self) -> Option<SocketAddr> {
        net::getsockname(&self.source).ok().and_then(|address| SocketAddr::try_from(address).ok())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}
