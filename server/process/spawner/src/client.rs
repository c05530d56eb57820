//! [`Client`]: the gateway's connection to the spawner, for one request at a time.
//!
//! Shared by the [`crate::Spawner`] and every [`crate::Child`]. Invariants: every request that has a
//! response gets it within a bound, and a spawner that does not respond counts as exited; a request without
//! a response is sent without waiting, as soon as the socket has room for it.

use crate::message::{Request, Response};
use outboard_ring::control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The spawner only forks and opens files, which takes longer only on a broken machine.
const TIMEOUT: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
const LAST_TIMEOUT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// See the module. The spawner exits when this is dropped.
#[derive(Debug)]
pub(crate) struct Client {
    control: OwnedFd,
    /// Held by a caller from its request to the response.
    turn: Mutex<()>,
    /// Requests without a response that are not sent yet, because the socket was full.
    pending: Mutex<VecDeque<Request>>,
    _process: Mutex<Child>,
}

impl Client {
    pub(crate) fn new(control: OwnedFd, process: Child) -> Self {
        let (turn, pending) = (Mutex::default(), Mutex::default());
        Self { control, turn, pending, _process: Mutex::new(process) }
    }

    /// A descriptor that hangs up when the spawner exits.
    pub(crate) fn watch(&self) -> io::Result<OwnedFd> {
        self.control.try_clone()
    }

    /// Sends a request that has no response.
    pub(crate) fn notify(&self, request: Request) {
        lock(&self.pending).push_back(request);
        self.send_pending();
    }

    /// Sends the requests of [`Client::notify`] for which there was no room.
    pub(crate) fn send_pending(&self) {
        let mut pending = lock(&self.pending);
        while let Some(request) = pending.front() {
            match control::try_send(&self.control, request, &[]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // If the spawner has exited, so have its children.
                Ok(()) | Err(_) => drop(pending.pop_front()),
            }
        }
    }

    /// Sends a request and waits for its response, for at most [`TIMEOUT`] and the turns of others.
    pub(crate) fn call(
        &self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(Response, Vec<OwnedFd>)> {
        let _turn = lock(&self.turn);
        self.exchange(TIMEOUT, request, descriptors)
    }

    /// The same when the server ends: it does not wait for others, and not for long.
    pub(crate) fn last_call(&self, request: &Request) -> io::Result<Response> {
        let _turn = self.turn.try_lock().map_err(|_| io::ErrorKind::WouldBlock)?;
        Ok(self.exchange(LAST_TIMEOUT, request, &[])?.0)
    }

    fn exchange(
        &self,
        timeout: Timespec,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(Response, Vec<OwnedFd>)> {
        self.wait(PollFlags::OUT, &timeout)?;
        control::send(&self.control, request, descriptors)?;
        self.wait(PollFlags::IN, &timeout)?;
        match control::receive(&self.control)? {
            Some((Response::Failed { why, errno }, _)) => Err(match errno {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::new(io::ErrorKind::Unsupported, why),
            }),
            Some(response) => Ok(response),
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the spawner has exited")),
        }
    }

    fn wait(&self, wanted: PollFlags, timeout: &Timespec) -> io::Result<()> {
        let ready_count = loop {
            match poll(&mut [PollFd::new(&self.control, wanted)], Some(timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?,
            }
        };
        if ready_count > 0 {
            return Ok(());
        }
        // A late response would be taken for that of the next request.
        let _ = shutdown(&self.control, Shutdown::Both);
        Err(io::Error::new(io::ErrorKind::TimedOut, "the spawner does not respond"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
