//! [`Source`]: a descriptor that tasks wait for.
//!
//! Used by streams, listeners and everything else that waits for a descriptor. Invariants: a
//! descriptor that is read or written does not block; one task waits on a source at a time.

use crate::budget;
use crate::executor::current_task;
use crate::reactor::with;
use crate::sources::{Bell, GONE, HANGUP, Interest, READ, Token, WRITE};
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl};
use std::io;
use std::rc::Rc;
use std::task::Poll;

/// A descriptor of the event loop. Closed and removed from epoll on drop.
#[derive(Debug)]
pub struct Source {
    fd: Rc<OwnedFd>,
    token: Token,
}

impl Source {
    /// Registers a non-blocking descriptor.
    ///
    /// # Errors
    /// `epoll_ctl(2)` fails (`EPERM` for regular files).
    pub fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        Self::register(fd, interest, None)
    }

    /// Registers an eventfd whose count is never read. Each event rings the bell; tasks cannot wait for
    /// it.
    ///
    /// # Errors
    /// `epoll_ctl(2)` fails.
    pub fn with_bell(fd: OwnedFd, bell: Rc<dyn Bell>) -> io::Result<Self> {
        Self::register(fd, Interest::ReadEdge, Some(bell))
    }

    fn register(fd: OwnedFd, interest: Interest, bell: Option<Rc<dyn Bell>>) -> io::Result<Self> {
        with(|reactor| {
            let fd = Rc::new(fd);
            let mut sources = reactor.sources.borrow_mut();
            let token = sources.add(&reactor.epoll, fd.clone(), interest, bell)?;
            Ok(Self { fd, token })
        })
    }

    /// The descriptor, which outlives this source.
    pub(crate) fn descriptor(&self) -> Rc<OwnedFd> {
        self.fd.clone()
    }

    /// Whether it may be readable; the current task is woken when that changes.
    pub fn poll_readable(&self) -> Poll<()> {
        self.poll(READ)
    }

    /// Whether it may be writable; the current task is woken when that changes.
    pub fn poll_writable(&self) -> Poll<()> {
        self.poll(WRITE)
    }

    /// Whether it may be readable or writable; the current task is woken when either changes.
    pub fn poll_readable_or_writable(&self) -> Poll<()> {
        self.poll(READ | WRITE)
    }

    /// Whether the peer has closed its side; the current task is woken when it does.
    pub fn poll_hangup(&self) -> Poll<()> {
        self.poll(HANGUP)
    }

    /// Whether nothing can be sent to the peer any more: the connection was reset, or both sides
    /// have closed. The current task is woken when that happens.
    pub fn poll_gone(&self) -> Poll<()> {
        self.poll(GONE)
    }

    /// Waits until it may be readable.
    pub async fn readable(&self) {
        std::future::poll_fn(|_| self.poll_readable()).await;
    }

    /// Waits until it may be writable.
    pub async fn writable(&self) {
        std::future::poll_fn(|_| self.poll_writable()).await;
    }

    /// Watches the descriptor no more, and forgets what is known of it, until a task waits for it again.
    pub fn rest(&self) {
        with(|reactor| reactor.sources.borrow_mut().rest(&reactor.epoll, self.token));
    }

    /// Notes that a read would have blocked, or returned less than requested.
    pub fn clear_readable(&self) {
        self.clear(READ);
    }

    /// Notes that a write would have blocked.
    pub fn clear_writable(&self) {
        self.clear(WRITE);
    }

    fn clear(&self, flags: EventFlags) {
        debug_assert!(
            fcntl_getfl(&self.fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)),
            "the loop blocks with the descriptor"
        );
        with(|reactor| reactor.sources.borrow_mut().clear(self.token, flags));
    }

    fn poll(&self, wanted: EventFlags) -> Poll<()> {
        with(|reactor| {
            // A task that waits only for the peer to close processes nothing that the peer sends.
            let is_spent = wanted.intersects(READ | WRITE) && budget::is_spent();
            // Without budget nothing was written, so it is not known whether the socket is full.
            if !(is_spent && wanted.contains(WRITE)) {
                let mut sources = reactor.sources.borrow_mut();
                let poll = sources.poll(&reactor.epoll, self.token, wanted, current_task);
                if poll.is_pending() || !is_spent {
                    return poll;
                }
            }
            reactor.executor.borrow_mut().wake_later(current_task());
            Poll::Pending
        })
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        with(|reactor| reactor.sources.borrow_mut().remove(&reactor.epoll, self.token));
    }
}
