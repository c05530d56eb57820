//! Captures the standard streams while the engine starts.
//!
//! Called by start-up. Invariant: the streams are restored when the capture ends.

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;

const MAX_BYTES: u64 = 32 * 1024;

/// Standard output and error redirected to memory.
#[derive(Debug)]
pub(crate) struct Capture {
    memory: File,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Capture {
    pub(crate) fn begin() -> io::Result<Self> {
        let memory = memfd_create("outboard-startup", MemfdFlags::CLOEXEC)?;
        let capture = Self {
            stdout: rustix::io::fcntl_dupfd_cloexec(stdout(), 3)?,
            stderr: rustix::io::fcntl_dupfd_cloexec(stderr(), 3)?,
            memory: File::from(memory),
        };
        dup2_stdout(&capture.memory)?;
        dup2_stderr(&capture.memory)?;
        Ok(capture)
    }

    /// Restores the streams of this process.
    pub(crate) fn restore(&self) -> io::Result<()> {
        // SAFETY: flushes the buffers of C code; NULL stands for all streams.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        dup2_stdout(&self.stdout)?;
        Ok(dup2_stderr(&self.stderr)?)
    }

    /// Restores the streams and returns the captured text.
    pub(crate) fn end(mut self) -> io::Result<String> {
        self.restore()?;
        self.memory.seek(SeekFrom::Start(0))?;
        let mut text = Vec::new();
        (&mut self.memory).take(MAX_BYTES).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }
}
