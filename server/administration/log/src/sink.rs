//! [`Sink`]: the lines of a shard for a log, until they are written.
//!
//! Written by the two logs, flushed by them and by the server's housekeeping. Invariants: a reader
//! that does not read (a stopped terminal, a stuck collector behind a pipe) never blocks the event loop:
//! lines are buffered up to a limit, and further lines are dropped and counted.

use crate::opener::Opener;
use crate::sink_target::{PIECE_BYTES, SinkTarget, Target};
use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;

/// Lines collected beyond this are written at once.
const FLUSH_BYTES: usize = 64 * 1024;
/// Above this many buffered bytes, further lines are dropped; [`Sink::set_room`] can lower it.
const MOST_WAITING_BYTES: usize = 256 * 1024;

/// See the module. Each shard has one for each target.
#[derive(Debug)]
pub struct Sink {
    target: Arc<SinkTarget>,
    buffer: RefCell<Vec<u8>>,
    room_bytes: Cell<usize>,
    lost_lines: Cell<u64>,
}

impl Sink {
    /// Opens a target that no other sink has.
    ///
    /// # Errors
    /// What opening the file reports.
    pub fn open(target: Target, opener: Opener) -> io::Result<Self> {
        let file = target.open(&opener)?;
        Ok(Self::of(&SinkTarget::new(target, opener, file, None)))
    }

    /// A sink of a target, which may have others on other shards.
    pub fn of(target: &Arc<SinkTarget>) -> Self {
        Self {
            target: target.clone(),
            buffer: RefCell::default(),
            room_bytes: Cell::new(MOST_WAITING_BYTES),
            lost_lines: Cell::new(0),
        }
    }

    /// Its target: for the sinks of other shards, and to reopen the file after log rotation.
    pub fn target(&self) -> &Arc<SinkTarget> {
        &self.target
    }

    /// Whether anything is written at all.
    pub fn is_on(&self) -> bool {
        self.target.is_on()
    }

    /// Whether lines are messages, which have a severity and a time of their own.
    pub(crate) fn has_messages(&self) -> bool {
        matches!(self.target.target(), Target::Messages(_))
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

    /// Writes what was collected, as far as that does not wait for a reader, or for a shard that writes to
    /// it. Lines that cannot be written (a full disk) are counted.
    pub fn flush(&self) {
        self.flush_by(|target, buffer| target.write(buffer));
    }

    fn flush_by(&self, write: impl FnOnce(&SinkTarget, &mut Vec<u8>) -> u64) {
        let mut buffer = self.buffer.borrow_mut();
        let lost_lines = write(&self.target, &mut buffer);
        self.lost_lines.set(self.lost_lines.get() + lost_lines);
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
        self.flush_by(|target, buffer| target.write_last(buffer));
    }

    /// Lines that could not be written so far.
    pub fn lost_lines(&self) -> u64 {
        self.lost_lines.get()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.flush_by(|target, buffer| target.write_in_turn(buffer));
    }
}

/// Appends text with control characters, quotes and backslashes escaped: for a value in quotes.
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for piece in text.split_inclusive(|byte| *byte == b'"') {
        let (plain, quote) = match piece {
            [plain @ .., b'"'] => (plain, &b"\\\""[..]),
            plain => (plain, &b""[..]),
        };
        push_line(out, plain);
        out.extend_from_slice(quote);
    }
}

/// Appends text with control characters and backslashes escaped: for the end of a line.
pub(super) fn push_line(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
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
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::fs::File;

    const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    #[test]
    fn a_rotated_file_is_reopened_and_every_line_is_in_one_of_both() {
        let directory = std::env::temp_dir().join(format!("outboard-sink-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, old) = (directory.join("log"), directory.join("log.1"));
        let sink = Sink::open(Target::File(path.clone()), Opener::default()).unwrap();
        sink.line(|out| out.extend_from_slice(b"before"));
        sink.flush();
        std::fs::rename(&path, &old).unwrap();
        sink.target().reopen().unwrap();
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
        out.clear();
        push_line(&mut out, b"write deny = [\"/a/\"]\n\\d");
        assert_eq!(out, b"write deny = [\"/a/\"]\\x0a\\\\d", "what is to be typed can be copied");
    }
}
