//! A zygote that another one is to fork: what its owner has of it, and what the first zygote gets.
//!
//! Created by the owner of the sibling; the owner of the first zygote, possibly in another thread, orders
//! the fork with [`Zygote::split`]. Invariant: no process is signalled from here, because its id could
//! be that of another; only its parent, the first zygote, does that.

use super::{Process, SpawnError, Zygote, control_sockets, output_pipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The sibling's ends of its control socket and of the pipe for its output, for [`Zygote::split`]. If
/// they are dropped instead, the sibling counts as exited.
#[derive(Debug)]
pub struct SiblingEnds {
    control: OwnedFd,
    output: OwnedFd,
}

impl SiblingEnds {
    /// In the order of [`outboard_ring::control::Order::Split`].
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.control.as_fd(), self.output.as_fd()]
    }
}

/// The process, as far as its owner knows it.
pub(super) struct Sibling {
    pid: Cell<Option<u32>>,
    request_kill: Box<dyn Fn() + Send>,
}

impl Sibling {
    /// Handles its report of the start. An id that no process can have is ignored.
    pub(super) fn started(&self, pid: i32) {
        self.pid.set(u32::try_from(pid).ok().filter(|pid| *pid > 0));
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid.get()
    }

    pub(super) fn kill(&self) {
        (self.request_kill)();
    }
}

impl fmt::Debug for Sibling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sibling").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Zygote {
    /// A sibling that is yet to be forked, the non-blocking read end of what it prints, and its ends of
    /// both for [`Zygote::split`]. [`outboard_ring::control::Event::Started`] follows, or
    /// [`super::Received::Closed`].
    ///
    /// Only the first zygote can signal it: `request_kill` has [`Zygote::kill_sibling`] called by the
    /// owner of the first one, without waiting for it. It is called by [`Zygote::kill`], and on drop
    /// unless the sibling has exited, which it does when the control socket closes if it is not stopped.
    /// If there is no first zygote any more, there is no sibling.
    ///
    /// # Errors
    /// [`SpawnError::Descriptors`].
    pub fn sibling(
        request_kill: Box<dyn Fn() + Send>,
    ) -> Result<(Self, OwnedFd, SiblingEnds), SpawnError> {
        let (control, of_sibling) = control_sockets().map_err(SpawnError::Descriptors)?;
        let (output, output_end) = output_pipe().map_err(SpawnError::Descriptors)?;
        let sibling = Sibling { pid: Cell::new(None), request_kill };
        let process = Process::Sibling(sibling);
        let zygote = Self { control, descriptors: RefCell::default(), process };
        Ok((zygote, output, SiblingEnds { control: of_sibling, output: output_end }))
    }
}

/// Whether the peer has closed its end: `POLLHUP` is set even if its last events are unread (poll(2)).
pub(super) fn is_closed(control: &OwnedFd) -> bool {
    let mut socket = [PollFd::new(control, PollFlags::empty())];
    poll(&mut socket, Some(&NO_WAIT)).is_ok() && socket[0].revents().contains(PollFlags::HUP)
}

#[cfg(test)]
mod tests;
