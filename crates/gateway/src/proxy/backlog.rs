//! [`Backlog`]: what an upstream has sent of an answer and the client has not taken yet.
//!
//! Filled by the [`Inflow`](super::inflow::Inflow), emptied by the connection. The beginning lies in
//! memory; what is more goes to an unnamed file, so that an upstream is done with an answer when it
//! has sent it, and not when a slow client has taken it (nginx's `proxy_buffering`). Invariants: what
//! comes out is what went in, in order; all files together stay within `io.max_temp_size`; a disk that
//! is full makes the upstream wait and breaks nothing.

use rustix::fs::{Mode, OFlags};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

/// What may lie in memory before the upstream has to wait, or the file is used.
const MEMORY_BYTES: usize = 64 << 10;
/// What is read back at once.
const PIECE_BYTES: usize = 64 << 10;
/// The part of all spooled bytes that one answer may have: one of so many.
const ANSWER_SHARE: u64 = 16;

/// What the files of all answers take.
#[derive(Debug, Default)]
pub(crate) struct Spooled {
    bytes: Cell<u64>,
}

/// Where the file of an answer may lie.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) folder: PathBuf,
    pub(super) spooled: Rc<Spooled>,
    /// Of all files together.
    pub(super) most_bytes: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Came before what is in the file.
    first: Vec<u8>,
    spill: Option<Spill>,
    /// Came after that.
    last: Vec<u8>,
    disk: Option<Disk>,
}

/// What lies in the file.
#[derive(Debug)]
struct Spill {
    file: File,
    written: u64,
    read: u64,
    spooled: Rc<Spooled>,
}

impl Backlog {
    /// One that may use the disk if it is given one.
    pub(super) fn new(disk: Option<Disk>) -> Self {
        Self { disk, ..Self::default() }
    }

    /// Whether nothing more should come for now.
    pub(super) fn is_full(&self) -> bool {
        !self.has_memory() && (!self.last.is_empty() || !self.has_disk())
    }

    fn has_memory(&self) -> bool {
        let is_spilled = self.spill.as_ref().is_some_and(|spill| spill.left() > 0);
        !is_spilled && self.last.is_empty() && self.first.len() < MEMORY_BYTES
    }

    fn has_disk(&self) -> bool {
        let written = self.spill.as_ref().map_or(0, |spill| spill.written);
        self.disk.as_ref().is_some_and(|disk| {
            written < disk.most_bytes / ANSWER_SHARE && disk.spooled.bytes.get() < disk.most_bytes
        })
    }

    /// Appends, and leaves `bytes` empty.
    pub(super) fn push(&mut self, bytes: &mut Vec<u8>) {
        if self.has_memory() {
            match self.first.is_empty() {
                true => std::mem::swap(&mut self.first, bytes),
                false => self.first.append(bytes),
            }
        } else if self.last.is_empty() && self.has_disk() && self.spill(bytes).is_ok() {
            bytes.clear();
        } else {
            self.last.append(bytes);
        }
    }

    fn spill(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let (None, Some(disk)) = (&self.spill, &self.disk) {
            self.spill = Some(Spill::open(disk)?);
        }
        self.spill.as_mut().map_or(Ok(()), |spill| spill.push(bytes))
    }

    /// Takes what comes next; empty when there is nothing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn take(&mut self) -> io::Result<Vec<u8>> {
        if !self.first.is_empty() {
            return Ok(std::mem::take(&mut self.first));
        }
        match &mut self.spill {
            Some(spill) if spill.left() > 0 => spill.take(),
            _ => Ok(std::mem::take(&mut self.last)),
        }
    }
}

impl Spill {
    fn open(disk: &Disk) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(&disk.folder, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Self { file: file.into(), written: 0, read: 0, spooled: disk.spooled.clone() })
    }

    fn left(&self) -> u64 {
        self.written - self.read
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.written)?;
        self.written += bytes.len() as u64;
        self.spooled.bytes.set(self.spooled.bytes.get() + bytes.len() as u64);
        Ok(())
    }

    fn take(&mut self) -> io::Result<Vec<u8>> {
        let most = usize::try_from(self.left()).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let mut piece = vec![0; most];
        self.file.read_exact_at(&mut piece, self.read)?;
        self.read += most as u64;
        if self.left() == 0 {
            self.file.set_len(0)?;
            self.give_back();
        }
        Ok(piece)
    }

    fn give_back(&mut self) {
        self.spooled.bytes.set(self.spooled.bytes.get() - self.written);
        (self.written, self.read) = (0, 0);
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(most_bytes: u64, spooled: &Rc<Spooled>) -> Disk {
        Disk { folder: "/tmp".into(), spooled: spooled.clone(), most_bytes }
    }

    /// Pieces that can be told apart.
    fn piece(number: u8) -> Vec<u8> {
        vec![number; 30 << 10]
    }

    #[track_caller]
    fn keeps_order(mut backlog: Backlog) {
        let (mut went_in, mut came_out) = (Vec::new(), Vec::new());
        for number in 0..100 {
            let mut bytes = piece(number);
            went_in.extend_from_slice(&bytes);
            backlog.push(&mut bytes);
            assert!(bytes.is_empty());
            if number % 7 == 0 {
                came_out.extend(backlog.take().unwrap());
            }
        }
        loop {
            let bytes = backlog.take().unwrap();
            if bytes.is_empty() {
                break;
            }
            came_out.extend(bytes);
        }
        assert!(went_in == came_out);
    }

    #[test]
    fn what_goes_in_comes_out_in_order_however_it_is_kept() {
        let spooled = Rc::default();
        keeps_order(Backlog::new(None));
        keeps_order(Backlog::new(Some(disk(1 << 30, &spooled))));
        // Some of it fits into no file.
        keeps_order(Backlog::new(Some(disk(16 * (100 << 10), &spooled))));
        let nowhere = Disk { folder: "/nonexistent".into(), ..disk(1 << 30, &spooled) };
        keeps_order(Backlog::new(Some(nowhere)));
        assert_eq!(spooled.bytes.get(), 0);
    }

    #[test]
    fn memory_and_disk_are_bounded_and_given_back() {
        let fill = |backlog: &mut Backlog| {
            let mut pushed = 0;
            while !backlog.is_full() {
                backlog.push(&mut piece(1));
                pushed += 1;
            }
            pushed
        };
        assert_eq!(fill(&mut Backlog::new(None)), 3, "64 KiB");
        let spooled = Rc::default();
        let mut on_disk = Backlog::new(Some(disk(16 * (100 << 10), &spooled)));
        assert_eq!(fill(&mut on_disk), 3 + 4, "and a sixteenth of what all may have");
        assert_eq!(spooled.bytes.get(), 4 * (30 << 10));
        let mut other = Backlog::new(Some(disk(90 << 10, &spooled)));
        assert_eq!(fill(&mut other), 3, "all have what they may have");
        drop(on_disk);
        assert_eq!(spooled.bytes.get(), 0);
    }

    #[test]
    fn a_disk_that_takes_nothing_makes_the_upstream_wait() {
        let spooled = Rc::default();
        let mut backlog = Backlog::new(Some(disk(1 << 30, &spooled)));
        for number in 0..3 {
            backlog.push(&mut piece(number));
        }
        // As with a full disk: each write fails.
        let file = File::open("/dev/null").unwrap();
        backlog.spill = Some(Spill { file, written: 0, read: 0, spooled });
        assert!(!backlog.is_full());
        backlog.push(&mut piece(3));
        assert!(backlog.is_full());
        assert_eq!(backlog.take().unwrap().len(), 3 * (30 << 10));
        assert_eq!(backlog.take().unwrap(), piece(3));
        assert!(!backlog.is_full());
    }
}
