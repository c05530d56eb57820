//! Destinations of log lines: a standard stream or a file that can be reopened after rotation.
//!
//! Written by the two logs, flushed by them and by the server's housekeeping. Invariants: a reader
//! that does not read (a stopped terminal, a stuck collector behind a pipe) never blocks the event loop:
//! lines are buffered up to a limit, and further lines are dropped and counted.

use crate::opener::Opener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

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

/// Lines collected beyond this are written at once.
const FLUSH_BYTES: usize = 64 * 1024;
/// Above this many buffered bytes, further lines are dropped; [`Sink::set_room`] can lower it.
const MOST_WAITING_BYTES: usize = 256 * 1024;
/// A pipe or socket that poll(2) reports as writable has room for this many bytes (`PIPE_BUF`, pipe(7)).
const PIECE_BYTES: usize = 4096;
/// Maximum time to wait for a reader at the end.
const LAST_WAIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A buffered destination.
#[derive(Debug)]
pub struct Sink {
    target: Target,
    opener: Opener,
    file: RefCell<Option<File>>,
    /// Whether a process reads the other end, which can stop reading.
    has_reader: Cell<bool>,
    buffer: RefCell<Vec<u8>>,
    room_bytes: Cell<usize>,
    lost_lines: Cell<u64>,
}

impl Sink {
    /// Opens the target.
    ///
    /// # Errors
    /// What opening the file reports.
    pub fn open(target: Target, opener: Opener) -> io::Result<Self> {
        let file = target.open(&opener)?;
        Ok(Self::with_file(target, opener, file))
    }

    /// The same with the file that [`Target::open`] has opened.
    pub fn with_file(target: Target, opener: Opener, file: Option<File>) -> Self {
        let sink = Self {
            target,
            opener,
            file: RefCell::new(file),
            has_reader: Cell::new(false),
            buffer: RefCell::default(),
            room_bytes: Cell::new(MOST_WAITING_BYTES),
            lost_lines: Cell::new(0),
        };
        sink.note_kind();
        sink
    }

    fn note_kind(&self) {
        let has_reader = |fd: BorrowedFd<'_>| {
            rustix::fs::fstat(fd)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile)
        };
        self.has_reader.set(self.with_fd(has_reader).unwrap_or(false));
    }

    fn with_fd<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        match (&self.target, self.file.borrow().as_ref()) {
            (Target::Stdout, _) => Some(act(rustix::stdio::stdout())),
            (Target::Stderr, _) => Some(act(rustix::stdio::stderr())),
            (_, Some(file)) => Some(act(file.as_fd())),
            (_, None) => None,
        }
    }

    /// Its target, and what opens that: to reopen the file after log rotation, for which a thread may wait.
    pub fn target(&self) -> (Target, Opener) {
        (self.target.clone(), self.opener.clone())
    }

    /// Continues with a file that was opened after log rotation. Buffered lines go there.
    pub fn replace_file(&self, file: Option<File>) {
        self.file.replace(file);
        self.note_kind();
    }

    /// Whether anything is written at all.
    pub fn is_on(&self) -> bool {
        self.target != Target::Off
    }

    /// Lets `write` append one line, without its newline.
    pub fn line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_on() {
            return;
        }
        let mut buffer = self.buffer.borrow_mut();
        if buffer.len() >= self.room_bytes.get() {
            return self.lost_lines.set(self.lost_lines.get() + 1);
        }
        write(&mut buffer);
        buffer.push(b'\n');
        if buffer.len() >= FLUSH_BYTES {
            drop(buffer);
            self.flush();
        }
    }

    /// Writes what was collected, as far as that does not wait for a reader. Lines that cannot be
    /// written (a full disk) are counted.
    pub fn flush(&self) {
        self.flush_within(NO_WAIT);
    }

    fn flush_within(&self, patience: Timespec) {
        let mut buffer = self.buffer.borrow_mut();
        if buffer.is_empty() {
            return;
        }
        let has_reader = self.has_reader.get();
        let written = self.with_fd(|fd| match has_reader {
            true => write_to_reader(fd, &buffer, patience),
            false => write_all(fd, &buffer),
        });
        match written {
            Some(Ok(count)) => drop(buffer.drain(..count)),
            Some(Err(_)) => {
                let lines = memchr::memchr_iter(b'\n', &buffer).count() as u64;
                self.lost_lines.set(self.lost_lines.get() + lines);
                buffer.clear();
            }
            None => buffer.clear(),
        }
        if buffer.is_empty() && buffer.capacity() > FLUSH_BYTES + PIECE_BYTES {
            *buffer = Vec::new();
        }
    }

    /// Number of buffered bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.buffer.borrow().len()
    }

    /// Sets the number of buffered bytes above which lines are dropped, within fixed bounds.
    pub fn set_room(&self, bytes: usize) {
        self.room_bytes.set(bytes.clamp(FLUSH_BYTES, MOST_WAITING_BYTES));
    }

    /// Writes buffered lines when the server ends, and waits a little for a reader.
    pub fn finish(&self) {
        self.flush_within(LAST_WAIT);
    }

    /// Lines that could not be written so far.
    pub fn lost_lines(&self) -> u64 {
        self.lost_lines.get()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.flush();
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

/// Writes while there is room. The descriptor may be shared and blocking, so it is asked before.
fn write_to_reader(fd: BorrowedFd<'_>, bytes: &[u8], patience: Timespec) -> Result<usize, Errno> {
    let mut written = 0;
    while written < bytes.len() {
        let mut ready = [PollFd::new(&fd, PollFlags::OUT)];
        match poll(&mut ready, Some(&patience)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
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

/// Appends text with control characters, quotes and backslashes escaped.
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x20..=0x7e | 0x80.. => out.push(byte),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(&digits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_file_is_reopened_and_every_line_is_in_one_of_both() {
        let directory = std::env::temp_dir().join(format!("outboard-sink-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, old) = (directory.join("log"), directory.join("log.1"));
        let sink = Sink::open(Target::File(path.clone()), Opener::default()).unwrap();
        sink.line(|out| out.extend_from_slice(b"before"));
        sink.flush();
        std::fs::rename(&path, &old).unwrap();
        let (target, opener) = sink.target();
        sink.replace_file(target.open(&opener).unwrap());
        sink.line(|out| out.extend_from_slice(b"after"));
        sink.flush();
        assert_eq!(std::fs::read(&old).unwrap(), b"before\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"after\n");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_stalled_reader_blocks_no_writer() {
        let directory = std::env::temp_dir().join(format!("outboard-fifo-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("log");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let mut reader = File::options().read(true).write(true).open(&path).unwrap();
        let sink = Sink::open(Target::File(path), Opener::default()).unwrap();
        let line = [b'x'; 1000];
        for _ in 0..1000 {
            sink.line(|out| out.extend_from_slice(&line));
            sink.flush();
        }
        assert!(sink.lost_lines() > 0);
        assert!(
            (MOST_WAITING_BYTES..MOST_WAITING_BYTES + 2 * line.len())
                .contains(&sink.waiting_bytes())
        );
        let lost_lines = sink.lost_lines();
        sink.set_room(0);
        sink.line(|out| out.extend_from_slice(&line));
        assert_eq!(sink.lost_lines(), lost_lines + 1);
        // What waits is written once the reader goes on, in whole lines.
        let mut read = Vec::new();
        for _ in 0..100 {
            sink.flush();
            let mut ready = [PollFd::new(&reader, PollFlags::IN)];
            if poll(&mut ready, Some(&NO_WAIT)).unwrap() == 0 {
                break;
            }
            let mut piece = [0; 8192];
            let count = io::Read::read(&mut reader, &mut piece).unwrap();
            read.extend_from_slice(&piece[..count]);
        }
        let lines = read.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        assert_eq!(lines.clone().count() as u64, 1000 - lost_lines);
        assert!(lines.clone().all(|line_read| line_read == line));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_line_cannot_forge_another() {
        let mut out = Vec::new();
        push_escaped(&mut out, b"a\nb\"\x1b[0m");
        assert_eq!(out, b"a\\x0ab\\\"\\x1b[0m");
    }
}
