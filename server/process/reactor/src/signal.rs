//! Signals of the process as events.
//!
//! Used by the main task of the gateway for termination, reload and log rotation.

use crate::source::Source;
use crate::sources::Interest;
use signal_hook::low_level::{pipe, unregister};
use std::io;
use std::os::unix::net::UnixStream;
use std::task::Poll;

/// The signals that servers act on.
pub mod signals {
    pub use signal_hook::consts::{
        SIGHUP as HANGUP, SIGINT as INTERRUPT, SIGTERM as TERMINATE, SIGUSR1 as USER_1,
        SIGUSR2 as USER_2,
    };
}

/// Receives one signal, which is caught until this is dropped.
#[derive(Debug)]
pub struct Signals {
    source: Source,
    registration: signal_hook::SigId,
}

impl Signals {
    /// Catches `signal` from now on.
    ///
    /// # Errors
    /// `socketpair(2)` or `sigaction(2)` fails.
    pub fn catch(signal: i32) -> io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        let registration = pipe::register(signal, sender)?;
        Ok(Self { source: Source::new(receiver.into(), Interest::Read)?, registration })
    }

    /// Whether the signal has arrived; several arrivals count as one. Otherwise the current task is
    /// woken by the next one.
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
