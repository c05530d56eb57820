//! [`SinkTarget`]: where the lines of a log go: a standard stream, a file that can be rotated, or messages.
//!
//! Shared by the sinks of all shards. Invariants: a line is never written into the middle of another shard's
//! line: files are opened with `O_APPEND`, only one shard writes at a time, and the rest of a line that a
//! reader has taken in part comes before anything else; no event loop waits for another shard that writes to
//! a reader, unless its lines would be lost.

use crate::datagrams::{Datagrams, Receiver};
use crate::opener::Opener;
use crate::rotation::Rotation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Destination of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Nothing is written.
    Off,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, appended to.
    File(PathBuf),
    /// A message for each line.
    Messages(Receiver),
}

impl Target {
    /// Opens its file, if it is one. May wait for a disk, or for the spawner.
    ///
    /// # Errors
    /// What opening the file reports.
    pub fn open(&self, opener: &Opener) -> io::Result<Option<File>> {
        match self {
            Self::File(path) => opener.append(path).map(Some),
            _ => Ok(None),
        }
    }
}

/// A pipe or socket that poll(2) reports as writable has room for this many bytes (`PIPE_BUF`, pipe(7)).
pub(crate) const PIECE_BYTES: usize = 4096;
/// Maximum time to wait for a reader at the end.
const LAST_WAIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// Locked between the question whether a reader's descriptor has room and the write, neither of which waits.
static READERS: Mutex<()> = Mutex::new(());

/// See the module.
#[derive(Debug)]
pub struct SinkTarget {
    target: Target,
    opener: Opener,
    rotation: Option<Rotation>,
    /// That of the outlet, known before it is locked.
    has_reader: AtomicBool,
    outlet: Mutex<Outlet>,
}

#[derive(Debug)]
struct Outlet {
    file: Option<File>,
    datagrams: Option<Datagrams>,
    /// Whether a process reads the other end, which can stop reading.
    has_reader: bool,
    /// What the reader has not taken of a line that it has begun.
    rest: Vec<u8>,
}

impl SinkTarget {
    /// A target with the file that [`Target::open`] has opened.
    pub fn new(
        target: Target,
        opener: Opener,
        file: Option<File>,
        rotation: Option<Rotation>,
    ) -> Arc<Self> {
        let datagrams = match &target {
            Target::Messages(receiver) => Some(Datagrams::new(receiver.clone())),
            _ => None,
        };
        let mut outlet = Outlet { file: None, datagrams, has_reader: false, rest: Vec::new() };
        outlet.set_file(&target, file);
        let has_reader = AtomicBool::new(outlet.has_reader);
        let outlet = Mutex::new(outlet);
        Arc::new(Self { target, opener, rotation, has_reader, outlet })
    }

    /// The destination.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether anything is written at all.
    pub fn is_on(&self) -> bool {
        self.target != Target::Off
    }

    /// Opens the file again after log rotation; the lines of all shards go there from then on. May wait for
    /// a disk, or for the spawner.
    ///
    /// # Errors
    /// What opening the file reports; the old one stays in use.
    pub fn reopen(&self) -> io::Result<()> {
        let file = self.target.open(&self.opener)?;
        let mut outlet = self.lock();
        outlet.set_file(&self.target, file);
        self.has_reader.store(outlet.has_reader, Ordering::Relaxed);
        Ok(())
    }

    /// Whether its file is to be renamed.
    pub fn is_rotation_due(&self) -> bool {
        let Some(rotation) = &self.rotation else { return false };
        self.lock().file.as_ref().is_some_and(|file| rotation.is_due(file))
    }

    /// Renames its file, and its predecessors, and opens it again. Waits for a disk.
    ///
    /// # Errors
    /// What renaming or opening reports; lines are written as before.
    pub fn rotate(&self) -> io::Result<()> {
        if let (Target::File(path), Some(rotation)) = (&self.target, &self.rotation) {
            rotation.rename(path)?;
        }
        self.reopen()
    }

    /// Writes lines and removes them, as far as that does not wait for a reader. Returns how many were lost.
    pub(crate) fn write(&self, lines: &mut Vec<u8>) -> u64 {
        // To append to a file waits for others that do in any case, in the kernel.
        if !self.has_reader.load(Ordering::Relaxed) {
            return self.write_in_turn(lines);
        }
        match self.outlet.try_lock() {
            Ok(mut outlet) => outlet.write(&self.target, lines, NO_WAIT),
            Err(TryLockError::Poisoned(outlet)) => {
                outlet.into_inner().write(&self.target, lines, NO_WAIT)
            }
            // Another shard writes: the next flush writes these.
            Err(TryLockError::WouldBlock) => 0,
        }
    }

    /// Writes lines that no later flush would write, after those that another shard writes.
    pub(crate) fn write_in_turn(&self, lines: &mut Vec<u8>) -> u64 {
        self.lock().write(&self.target, lines, NO_WAIT)
    }

    /// The same, and waits a little for a reader.
    pub(crate) fn write_last(&self, lines: &mut Vec<u8>) -> u64 {
        self.lock().write(&self.target, lines, LAST_WAIT)
    }

    fn lock(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outlet {
    fn set_file(&mut self, target: &Target, file: Option<File>) {
        self.file = file;
        let has_reader = |fd: BorrowedFd<'_>| {
            rustix::fs::fstat(fd)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile)
        };
        self.has_reader = self.fd(target).is_some_and(has_reader);
    }

    fn fd(&self, target: &Target) -> Option<BorrowedFd<'_>> {
        match target {
            Target::Stdout => Some(rustix::stdio::stdout()),
            Target::Stderr => Some(rustix::stdio::stderr()),
            _ => self.file.as_ref().map(AsFd::as_fd),
        }
    }

    /// Writes the rest of a line, then these lines, and removes what was written.
    fn write(&mut self, target: &Target, lines: &mut Vec<u8>, patience: Timespec) -> u64 {
        if let Some(datagrams) = &mut self.datagrams {
            return datagrams.write(lines);
        }
        let mut rest = std::mem::take(&mut self.rest);
        match self.write_after(&mut rest, target, lines, patience) {
            Ok(()) => {
                self.rest = rest;
                0
            }
            Err(_) => {
                let ends = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count() as u64;
                let lost_lines = ends(&rest) + ends(lines);
                lines.clear();
                lost_lines
            }
        }
    }

    fn write_after(
        &self,
        rest: &mut Vec<u8>,
        target: &Target,
        lines: &mut Vec<u8>,
        patience: Timespec,
    ) -> Result<(), Errno> {
        self.write_piece(target, rest, patience)?;
        if rest.is_empty() && self.write_piece(target, lines, patience)? {
            let end = memchr::memchr(b'\n', lines).map_or(lines.len(), |at| at + 1);
            rest.extend(lines.drain(..end));
        }
        Ok(())
    }

    /// Writes what does not wait longer than this, and removes it. Returns whether it ends within a line.
    fn write_piece(
        &self,
        target: &Target,
        bytes: &mut Vec<u8>,
        patience: Timespec,
    ) -> Result<bool, Errno> {
        let count = match self.fd(target) {
            _ if bytes.is_empty() => 0,
            None => bytes.len(),
            Some(fd) if self.has_reader => write_to_reader(fd, bytes, patience)?,
            Some(fd) => write_all(fd, bytes)?,
        };
        let is_cut = bytes[..count].last().is_some_and(|last| *last != b'\n');
        bytes.drain(..count);
        Ok(is_cut)
    }
}

fn write_all(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(fd, &bytes[written..]) {
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Writes while there is room. The descriptor may be shared and blocking, so it is asked before. Both
/// standard streams are often the same pipe or socket, so only one shard asks and writes at a time.
fn write_to_reader(fd: BorrowedFd<'_>, bytes: &[u8], patience: Timespec) -> Result<usize, Errno> {
    let mut written = 0;
    while written < bytes.len() {
        if patience != NO_WAIT && !has_room(fd, patience)? {
            break;
        }
        let _turn = READERS.lock().unwrap_or_else(PoisonError::into_inner);
        if !has_room(fd, NO_WAIT)? {
            if patience != NO_WAIT {
                continue;
            }
            break;
        }
        let end = bytes.len().min(written + PIECE_BYTES);
        match rustix::io::write(fd, &bytes[written..end]) {
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

fn has_room(fd: BorrowedFd<'_>, patience: Timespec) -> Result<bool, Errno> {
    loop {
        match poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&patience)) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

#[cfg(test)]
mod tests;
