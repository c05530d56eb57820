//! An eventfd that wakes a sleeping side.
//!
//! The gateway polls one doorbell for all of its workers in epoll; each worker blocks on its own.
//! Invariant: ringing never blocks (the counter saturates far beyond any real use).

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wakes whoever waits on it.
#[derive(Debug)]
pub struct Doorbell(OwnedFd);

impl Doorbell {
    /// A doorbell to be watched by epoll.
    ///
    /// # Errors
    /// What `eventfd(2)` reports.
    pub fn nonblocking() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// A doorbell that [`Doorbell::wait`] blocks on.
    ///
    /// # Errors
    /// What `eventfd(2)` reports.
    pub fn blocking() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    /// A doorbell received from another process.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Wakes the other side. A full counter means that it is being woken already.
    pub fn ring(&self) {
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Blocks until rung and clears it; a signal ends the wait as well. Callers look at their
    /// ring in either case.
    pub fn wait(&self) {
        let mut count = [0; 8];
        let _ = read(&self.0, &mut count);
    }

    /// Another handle to the same doorbell, to be passed to another process.
    ///
    /// # Errors
    /// What `fcntl(F_DUPFD_CLOEXEC)` reports.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// The descriptor, to be passed to another process.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
