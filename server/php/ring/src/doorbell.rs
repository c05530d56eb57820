//! Doorbells: eventfds that wake a sleeping process.
//!
//! Each worker has two: the gateway's epoll watches the one that the worker rings, and the worker
//! waits on an [`Awaited`] that contains the other. Invariants: ringing never blocks, and only the
//! gateway has a descriptor of an eventfd that it rings: `O_NONBLOCK` and the count of an eventfd
//! belong to all processes that share it, and a full count makes write(2) block. A worker can
//! change neither through its epoll, because epoll_ctl(2) requires the descriptor.

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::write;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wakes the process that waits on it. The count is never read: epoll reports each ring
/// (`EPOLLET`).
#[derive(Debug)]
pub struct Doorbell(OwnedFd);

impl Doorbell {
    /// A doorbell for an edge-triggered epoll.
    ///
    /// # Errors
    /// `eventfd(2)` fails.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// A doorbell received from another process.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Wakes the other side. With a full counter it is being woken already.
    pub fn ring(&self) {
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Another handle to the same doorbell, for another thread or process that rings it.
    ///
    /// # Errors
    /// What `fcntl(F_DUPFD_CLOEXEC)` reports.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// The descriptor, for epoll.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// An epoll with doorbells in it, for a worker that must not have the doorbells.
#[derive(Debug)]
pub struct Awaited(OwnedFd);

impl Awaited {
    /// Waits for `doorbell`.
    ///
    /// # Errors
    /// `epoll_create1(2)` or `epoll_ctl(2)` fails.
    pub fn new(doorbell: &Doorbell) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let awaited = Self(epoll);
        awaited.add(doorbell)?;
        Ok(awaited)
    }

    /// An epoll received from another process.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Adds another doorbell.
    ///
    /// # Errors
    /// What `epoll_ctl(2)` reports.
    pub fn add(&self, doorbell: &Doorbell) -> io::Result<()> {
        debug_assert!(
            fcntl_getfl(doorbell).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)),
            "a ring would block once the count is full"
        );
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        Ok(epoll::add(&self.0, doorbell, epoll::EventData::new_u64(0), flags)?)
    }

    /// Blocks until a doorbell rings or a signal arrives. The caller checks its ring in either
    /// case.
    pub fn wait(&self) {
        self.take(None);
    }

    /// Clears pending rings.
    pub fn clear(&self) {
        self.take(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    }

    fn take(&self, timeout: Option<&Timespec>) {
        let mut space = [const { MaybeUninit::uninit() }; 2];
        let _ = epoll::wait(&self.0, &mut space, timeout);
    }
}

impl AsFd for Awaited {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn is_rung(awaited: &Awaited) -> bool {
        let mut ready = [PollFd::new(awaited, PollFlags::IN)];
        poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn each_ring_ends_one_wait() {
        let doorbell = Doorbell::new().unwrap();
        let awaited = Awaited::new(&doorbell).unwrap();
        assert!(!is_rung(&awaited));
        for _ in 0..3 {
            doorbell.ring();
            doorbell.ring();
            assert!(is_rung(&awaited));
            awaited.wait();
            assert!(!is_rung(&awaited));
        }
    }

    #[test]
    fn a_full_counter_does_not_block_and_still_wakes() {
        let doorbell = Doorbell::new().unwrap();
        let awaited = Awaited::new(&doorbell).unwrap();
        write(&doorbell, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        doorbell.ring();
        assert!(is_rung(&awaited));
    }

    #[test]
    fn the_waiting_end_cannot_ring() {
        let doorbell = Doorbell::new().unwrap();
        let awaited = Awaited::new(&doorbell).unwrap();
        assert!(write(&awaited, &u64::MAX.to_ne_bytes()).is_err());
        let other = doorbell.try_clone().unwrap();
        assert!(epoll::delete(&awaited, &other).is_err(), "asked for by another number");
    }
}
