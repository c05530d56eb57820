//! [`Client`]: the gateway's connection to the spawner, for one request at a time.
//!
//! Shared by the [`crate::Spawner`] and every [`crate::Child`]. Invariant: every request gets a response
//! within a bound; a spawner that does not respond counts as exited.

use crate::message::{Request, Response};
use outboard_ring::control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, PoisonError};

/// The spawner only forks and opens files, which takes longer only on a broken machine.
const TIMEOUT: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// See the module. The spawner exits when this is dropped.
#[derive(Debug)]
pub(crate) struct Client {
    control: Mutex<OwnedFd>,
    _process: Mutex<Child>,
}

impl Client {
    pub(crate) fn new(control: OwnedFd, process: Child) -> Self {
        Self { control: Mutex::new(control), _process: Mutex::new(process) }
    }

    /// A descriptor that hangs up when the spawner exits.
    pub(crate) fn watch(&self) -> io::Result<OwnedFd> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }

    pub(crate) fn call(
        &self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(Response, Vec<OwnedFd>)> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        control::send(&*control, request, descriptors)?;
        let ready_count = loop {
            let mut ready = [PollFd::new(&*control, PollFlags::IN)];
            match poll(&mut ready, Some(&TIMEOUT)) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?,
            }
        };
        if ready_count == 0 {
            // A late response would be taken for that of the next request.
            let _ = rustix::net::shutdown(control.as_fd(), rustix::net::Shutdown::Both);
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the spawner does not respond"));
        }
        match control::receive(&*control)? {
            Some((Response::Failed { why, errno }, _)) => Err(match errno {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::new(io::ErrorKind::Unsupported, why),
            }),
            Some(response) => Ok(response),
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the spawner has exited")),
        }
    }
}
