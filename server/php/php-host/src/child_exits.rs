//! [`ChildExits`]: a descriptor that is readable once a child has exited.
//!
//! Owned by a zygote. Invariant: the signal is blocked in the zygote as long as it waits for the
//! descriptor, and in none of its workers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A signalfd for SIGCHLD.
#[derive(Debug)]
pub(crate) struct ChildExits(OwnedFd);

fn child_signals() -> libc::sigset_t {
    // SAFETY: sigemptyset(3) initialises the zeroed memory.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
        signals
    }
}

impl ChildExits {
    /// After PHP's start-up, which may have run children of its own, and before the first worker; in a
    /// sibling, which has inherited the blocked signal, again.
    pub(crate) fn watch() -> io::Result<Self> {
        let signals = child_signals();
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: a valid signal set; the returned descriptor has no other owner.
        unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
            let fd = libc::signalfd(-1, &raw const signals, flags);
            if fd == -1 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// In a worker, because scripts reap their own children.
    pub(crate) fn unblock(&self) {
        let signals = child_signals();
        // SAFETY: a valid signal set.
        unsafe {
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut());
        }
    }

    pub(crate) fn clear(&self) {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>() * 8];
        while rustix::io::read(&self.0, &mut info).is_ok_and(|len| len == info.len()) {}
    }
}

impl AsFd for ChildExits {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
