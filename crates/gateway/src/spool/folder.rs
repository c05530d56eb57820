//! [`SpoolFolder`]: the folder `io.temp_dir`, and what its unnamed files take of `io.max_temp_size`.
//!
//! One per process. Request bodies and the answers that slow clients have not taken lie there, each
//! in a [`SpoolFile`]. Invariants: a file has no name, so nothing is left of it; what all files
//! together take stays within the limit; a write that fails changes nothing.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct SpoolFolder {
    path: PathBuf,
    taken_bytes: Cell<u64>,
    limit_bytes: Cell<u64>,
}

/// An unnamed file, written at its end and read anywhere.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    file: File,
    len: u64,
    folder: Rc<SpoolFolder>,
}

impl SpoolFolder {
    pub(crate) fn new(path: PathBuf, limit_bytes: u64) -> Rc<Self> {
        let limit_bytes = Cell::new(limit_bytes);
        Rc::new(Self { path, taken_bytes: Cell::new(0), limit_bytes })
    }

    /// Changes what all files may take; what they have stays.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit_bytes.set(bytes);
    }

    /// What all files may take.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes.get()
    }

    /// What all files take.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken_bytes.get()
    }

    /// A new file.
    ///
    /// # Errors
    /// What `open(O_TMPFILE)` reports.
    pub(crate) fn open(self: &Rc<Self>) -> io::Result<SpoolFile> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(SpoolFile { file: file.into(), len: 0, folder: self.clone() })
    }
}

impl SpoolFile {
    /// Appends all.
    ///
    /// # Errors
    /// `StorageFull` beyond the folder's limit; what `pwrite(2)` reports, a full disk for one.
    pub(crate) fn push(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes = slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        let taken_bytes = self.folder.taken_bytes() + bytes;
        if taken_bytes > self.folder.limit_bytes() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "io.max_temp_size is reached"));
        }
        let mut at = self.len;
        for slice in slices {
            self.file.write_all_at(slice, at)?;
            at += slice.len() as u64;
        }
        self.len = at;
        self.folder.taken_bytes.set(taken_bytes);
        Ok(())
    }

    /// How long it is.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads a whole piece.
    ///
    /// # Errors
    /// What `pread(2)` reports; `UnexpectedEof` when it is shorter than was written.
    pub(crate) fn read(&self, piece: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(piece, at)
    }
}

impl AsFd for SpoolFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        self.folder.taken_bytes.set(self.folder.taken_bytes() - self.len);
    }
}

#[cfg(test)]
impl SpoolFile {
    /// As on a full disk, each write fails.
    pub(super) fn on_a_full_disk(folder: &Rc<SpoolFolder>) -> Self {
        let file = File::options().read(true).write(true).open("/dev/full").unwrap();
        Self { file, len: 0, folder: folder.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_stay_within_the_limit_and_give_back_what_they_took() {
        let folder = SpoolFolder::new("/tmp".into(), 10);
        let (mut one, mut other) = (folder.open().unwrap(), folder.open().unwrap());
        one.push(&[IoSlice::new(b"four"), IoSlice::new(b"two")]).unwrap();
        let refused = other.push(&[IoSlice::new(b"eleven")]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert_eq!((other.len(), folder.taken_bytes()), (0, 7));
        let mut piece = [0; 5];
        one.read(&mut piece, 1).unwrap();
        assert_eq!(&piece, b"ourtw");
        drop(one);
        other.push(&[IoSlice::new(b"eleven")]).unwrap();
        assert_eq!(folder.taken_bytes(), 6);
    }

    #[test]
    fn a_write_that_fails_changes_nothing() {
        let folder = SpoolFolder::new("/tmp".into(), 10);
        let mut file = SpoolFile::on_a_full_disk(&folder);
        assert!(file.push(&[IoSlice::new(b"four")]).is_err());
        assert_eq!((file.len(), folder.taken_bytes()), (0, 0));
        assert!(SpoolFolder::new("/nonexistent/folder".into(), 10).open().is_err());
    }
}
