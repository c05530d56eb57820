//! [`TempDir`]: the directory `io.temp_dir` and its unnamed files, limited by `io.max_temp_size`.
//!
//! One per process. Large request bodies, and responses that clients read slowly, are in a
//! [`TempFile`] each. Invariants: a file has no name, so the kernel removes it; the total stays within
//! the limit; a write that fails changes nothing.

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
pub struct TempDir {
    path: PathBuf,
    used_bytes: Cell<u64>,
    limit_bytes: Cell<u64>,
}

/// An unnamed file, written at its end and read anywhere.
#[derive(Debug)]
pub struct TempFile {
    file: File,
    len: u64,
    dir: Rc<TempDir>,
}

impl TempDir {
    /// A directory and the limit of all its files.
    pub fn new(path: PathBuf, limit_bytes: u64) -> Rc<Self> {
        let limit_bytes = Cell::new(limit_bytes);
        Rc::new(Self { path, used_bytes: Cell::new(0), limit_bytes })
    }

    /// Changes the limit; existing files remain.
    pub fn set_limit(&self, bytes: u64) {
        self.limit_bytes.set(bytes);
    }

    /// The limit of all files.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.get()
    }

    /// The size of all files.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.get()
    }

    /// A new file.
    ///
    /// # Errors
    /// Errors of `open(O_TMPFILE)`.
    pub fn open(self: &Rc<Self>) -> io::Result<TempFile> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(TempFile { file: file.into(), len: 0, dir: self.clone() })
    }
}

impl TempFile {
    /// Appends all.
    ///
    /// # Errors
    /// `StorageFull` beyond the limit; errors of `pwrite(2)`, such as a full disk.
    pub fn push(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes = slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        let used_bytes = self.dir.used_bytes() + bytes;
        if used_bytes > self.dir.limit_bytes() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "io.max_temp_size is reached"));
        }
        let mut at = self.len;
        for slice in slices {
            self.file.write_all_at(slice, at)?;
            at += slice.len() as u64;
        }
        self.len = at;
        self.dir.used_bytes.set(used_bytes);
        Ok(())
    }

    /// Bytes written.
    pub fn length(&self) -> u64 {
        self.len
    }

    /// Fills the slice from this offset.
    ///
    /// # Errors
    /// Errors of `pread(2)`; `UnexpectedEof` if the file became shorter.
    pub fn read(&self, piece: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(piece, at)
    }
}

impl AsFd for TempFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.dir.used_bytes.set(self.dir.used_bytes() - self.len);
    }
}

#[cfg(test)]
impl TempFile {
    /// As on a full disk, each write fails.
    fn on_a_full_disk(dir: &Rc<TempDir>) -> Self {
        let file = File::options().read(true).write(true).open("/dev/full").unwrap();
        Self { file, len: 0, dir: dir.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_stay_within_the_limit() {
        let dir = TempDir::new("/tmp".into(), 10);
        let (mut one, mut other) = (dir.open().unwrap(), dir.open().unwrap());
        one.push(&[IoSlice::new(b"four"), IoSlice::new(b"two")]).unwrap();
        let refused = other.push(&[IoSlice::new(b"eleven")]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert_eq!((other.length(), dir.used_bytes()), (0, 7));
        let mut piece = [0; 5];
        one.read(&mut piece, 1).unwrap();
        assert_eq!(&piece, b"ourtw");
        drop(one);
        other.push(&[IoSlice::new(b"eleven")]).unwrap();
        assert_eq!(dir.used_bytes(), 6);
    }

    #[test]
    fn a_write_that_fails_changes_nothing() {
        let dir = TempDir::new("/tmp".into(), 10);
        let mut file = TempFile::on_a_full_disk(&dir);
        assert!(file.push(&[IoSlice::new(b"four")]).is_err());
        assert_eq!((file.length(), dir.used_bytes()), (0, 0));
        assert!(TempDir::new("/nonexistent/dir".into(), 10).open().is_err());
    }
}
