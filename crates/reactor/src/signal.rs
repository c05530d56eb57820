//! Signals of the process as something to wait for.
//!
//! Called by the gateway's main task for termination, reload and log rotation.

use crate::source::{Interest, Source};
use signal_hook::low_level::{pipe, unregister};
use std::io;
use std::os::unix::net::UnixStream;
use std::task::Poll;

/// The numbers of the signals that servers act on.
pub mod signals {
    pub use signal_hook::consts::{
        SIGHUP as HANGUP, SIGINT as INTERRUPT, SIGTERM as TERMINATE, SIGUSR1 as USER_1,
    };
}

/// Waits for one signal number; the signal keeps being caught until this is dropped.
#[derive(Debug)]
pub struct Signals {
    source: Source,
    registration: signal_hook::SigId,
}

impl Signals {
    /// Catches `signal` from now on.
    ///
    /// # Errors
    /// What `socketpair(2)` and `sigaction(2)` report.
    pub fn catch(signal: i32) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let registration = pipe::register(signal, theirs)?;
        Ok(Self { source: Source::new(ours.into(), Interest::Read)?, registration })
    }

    /// Whether the signal has arrived; several arrivals count as one. The current task is woken
    /// by the next otherwise.
    pub fn poll(&self) -> Poll<()> {
        let mut bytes = [0; 64];
        while self.source.poll_readable().is_ready() {
            let arrived = rustix::io::read(&self.source, &mut bytes);
            if !matches!(arrived, Ok(count) if count == bytes.len()) {
                self.source.clear_readable();
            }
            if arrived.is_ok() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        unregister(self.registration);
    }
}
