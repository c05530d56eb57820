//! The pid file of a named server: finds its holder, and signals exactly that process.
//!
//! The server holds a record lock on it (fcntl(2), `F_SETLK`) from before it reads its
//! configuration until it ends; the kernel drops the lock with the process and reports its
//! holder (`F_GETLK`). The number in the file is informational: a stale or reused number is never
//! trusted.
//!
//! Why no other process is ever signalled: the holder is queried, its pidfd is opened, and it is
//! queried again. If the result is the same, the pidfd is that of the holder, or of a process
//! that has ended; a later process with the same number is not behind that pidfd (pidfd_open(2)).
//!
//! A record lock goes when its process closes *any* descriptor of the file, so nothing else in a
//! server's process opens it. Children do not inherit it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{
    Flock, FlockType, Pid, PidfdFlags, Signal, fcntl_getlk, pidfd_open, pidfd_send_signal,
};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A server's hold on its pid file; the file goes with it.
#[derive(Debug)]
pub(crate) struct PidFile {
    /// Holds the lock.
    file: File,
    path: PathBuf,
    /// Not that of a predecessor.
    is_locked: bool,
}

/// The holder of a pid file.
#[derive(Debug)]
pub(crate) enum Presence {
    /// This process.
    Running(Owner),
    /// No process: the server was killed.
    Dead,
    /// The file is missing or empty: the server was stopped, or never started.
    Stopped,
}

/// The process that holds a pid file.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) pid: i32,
    process: OwnedFd,
}

impl PidFile {
    /// Opens the file that the predecessor holds; [`PidFile::lock`] follows when it does not any more.
    ///
    /// # Errors
    /// What opening it reports.
    pub(crate) fn of_predecessor(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open(path, true)?, path: path.to_owned(), is_locked: false })
    }

    /// Acquires the file of a predecessor, which has left it.
    ///
    /// # Errors
    /// What locking or writing it reports.
    pub(crate) fn lock(&mut self) -> io::Result<()> {
        fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive)?;
        self.is_locked = true;
        self.file.set_len(0)?;
        self.file.rewind()?;
        writeln!(self.file, "{}", std::process::id())
    }

    /// Leaves the file to a successor.
    pub(crate) fn leave(mut self) {
        self.is_locked = false;
        // The end of its descriptor ends the lock.
    }

    /// Acquires the file for this process; `None` if another process holds it.
    ///
    /// # Errors
    /// What opening or writing it reports.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let mut file = open(path, true)?;
            match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN | Errno::ACCESS) => return Ok(None),
                result => result?,
            }
            // Its owner may have removed it between our open and our lock.
            if !is_at(&file, path) {
                continue;
            }
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())?;
            return Ok(Some(Self { file, path: path.to_owned(), is_locked: true }));
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if !self.is_locked {
            return;
        }
        // Removed before the lock is released. A server that has dropped root's privileges cannot
        // remove it from root's directory; an empty file means the same.
        if std::fs::remove_file(&self.path).is_err() {
            let _ = self.file.set_len(0);
        }
    }
}

/// The holder of the file.
///
/// # Errors
/// What opening it or querying its lock reports.
pub(crate) fn look(path: &Path) -> io::Result<Presence> {
    loop {
        let file = match open(path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Presence::Stopped),
            result => result?,
        };
        let Some(pid) = holder(&file)? else {
            if is_at(&file, path) {
                let was_stopped = file.metadata()?.len() == 0;
                return Ok(if was_stopped { Presence::Stopped } else { Presence::Dead });
            }
            continue;
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) if holder(&file)? == Some(pid) => {
                return Ok(Presence::Running(Owner { pid: pid.as_raw_nonzero().get(), process }));
            }
            // It has ended since; repeat.
            Ok(_) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Owner {
    /// Sends a signal, unless the process has ended.
    ///
    /// # Errors
    /// What pidfd_send_signal(2) reports, such as that it is not ours to signal.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.process, signal) {
            Err(Errno::SRCH) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Whether it has ended, or does so within `timeout_ms`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub(crate) fn has_ended_within(&self, timeout_ms: u64) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(timeout_ms % 1000).unwrap_or(0) * 1_000_000,
        };
        loop {
            match poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&timeout)) {
                Err(Errno::INTR) => {}
                result => return Ok(result? > 0),
            }
        }
    }
}

fn open(path: &Path, make: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(make).create(make).truncate(false).open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

/// # Errors
/// What `F_GETLK` reports, or that the holder is not visible.
fn holder(file: &File) -> io::Result<Option<Pid>> {
    let Some(lock) = fcntl_getlk(file, &Flock::from(FlockType::WriteLock))? else {
        return Ok(None);
    };
    let out_of_sight = || io::Error::other("it is locked by a process of another container");
    lock.pid.ok_or_else(out_of_sight).map(Some)
}

#[cfg(test)]
mod tests;
