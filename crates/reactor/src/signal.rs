//! Signals of the process as something to wait for.
//!
//! Called by the gateway's main task for termination, reload and log rotation.

use crate::source::{Interest, Source};
use signal_hook::low_level::{pipe, unregister};
use std::io;
use std::os::unix::net::UnixStream;

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

    /// Waits for the next arrival; several that came meanwhile count as one.
    pub async fn arrival(&self) {
        let mut bytes = [0; 64];
        loop {
            self.source.readable().await;
            match rustix::io::read(&self.source, &mut bytes) {
                Ok(count) => {
                    if count < bytes.len() {
                        self.source.clear_readable();
                    }
                    return;
                }
                Err(_) => self.source.clear_readable(),
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        unregister(self.registration);
    }
}
