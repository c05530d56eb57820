//! Where log lines go: a standard stream or a file that can be reopened after rotation.

use crate::opener::Opener;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Destination of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Nothing is written.
    Off,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, appended to.
    File(PathBuf),
}

/// Lines collected beyond this are written at once.
const FLUSH_BYTES: usize = 64 * 1024;

/// A buffered destination.
#[derive(Debug)]
pub(crate) struct Sink {
    target: Target,
    opener: Opener,
    file: RefCell<Option<File>>,
    buffer: RefCell<Vec<u8>>,
    lost_lines: Cell<u64>,
}

impl Sink {
    /// Opens the target.
    ///
    /// # Errors
    /// What opening the file reports.
    pub(crate) fn open(target: Target, opener: Opener) -> io::Result<Self> {
        let file = RefCell::new(open(&target, &opener)?);
        Ok(Self { target, opener, file, buffer: RefCell::default(), lost_lines: Cell::new(0) })
    }

    /// Opens the file anew, after it was moved away by log rotation.
    ///
    /// # Errors
    /// What opening the file reports; the old one stays in use.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        self.flush();
        *self.file.borrow_mut() = open(&self.target, &self.opener)?;
        Ok(())
    }

    /// Whether anything is written at all.
    pub(crate) fn is_on(&self) -> bool {
        self.target != Target::Off
    }

    /// Lets `write` append one line, without its newline.
    pub(crate) fn line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_on() {
            return;
        }
        let mut buffer = self.buffer.borrow_mut();
        write(&mut buffer);
        buffer.push(b'\n');
        if buffer.len() >= FLUSH_BYTES {
            drop(buffer);
            self.flush();
        }
    }

    /// Writes what was collected. Lines that cannot be written (a full disk) are counted.
    pub(crate) fn flush(&self) {
        let mut buffer = self.buffer.borrow_mut();
        if buffer.is_empty() {
            return;
        }
        let written = match (&self.target, self.file.borrow_mut().as_mut()) {
            (Target::Stdout, _) => io::stdout().lock().write_all(&buffer),
            (Target::Stderr, _) => io::stderr().lock().write_all(&buffer),
            (_, Some(file)) => file.write_all(&buffer),
            (_, None) => Ok(()),
        };
        if written.is_err() {
            let lines = memchr::memchr_iter(b'\n', &buffer).count() as u64;
            self.lost_lines.set(self.lost_lines.get() + lines);
        }
        buffer.clear();
    }

    /// Lines that could not be written so far.
    pub(crate) fn lost_lines(&self) -> u64 {
        self.lost_lines.get()
    }
}

fn open(target: &Target, opener: &Opener) -> io::Result<Option<File>> {
    match target {
        Target::File(path) => opener.append(path).map(Some),
        _ => Ok(None),
    }
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
        let folder = std::env::temp_dir().join(format!("outboard-sink-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, old) = (folder.join("log"), folder.join("log.1"));
        let sink = Sink::open(Target::File(path.clone()), Opener::default()).unwrap();
        sink.line(|out| out.extend_from_slice(b"before"));
        std::fs::rename(&path, &old).unwrap();
        sink.reopen().unwrap();
        sink.line(|out| out.extend_from_slice(b"after"));
        sink.flush();
        assert_eq!(std::fs::read(&old).unwrap(), b"before\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"after\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_cannot_forge_another() {
        let mut out = Vec::new();
        push_escaped(&mut out, b"a\nb\"\x1b[0m");
        assert_eq!(out, b"a\\x0ab\\\"\\x1b[0m");
    }
}
