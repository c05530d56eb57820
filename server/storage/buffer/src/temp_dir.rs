//! [`TempDir`]: the directory `io.temp_dir` and its unnamed files, limited by `io.max_temp_size`.
//!
//! One per process, shared by all shards. Large request bodies, and responses that clients read slowly, are in a
//! [`TempFile`] each. Invariants: a file has no name, so the kernel removes it; the total of
//! all shards stays within the limit; a write that fails changes nothing.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
    used_bytes: AtomicU64,
    limit_bytes: AtomicU64,
}

/// An unnamed file, written at its end and read anywhere.
#[derive(Debug)]
pub struct TempFile {
    file: File,
    len: u64,
    dir: Arc<TempDir>,
}

impl TempDir {
    /// A directory and the limit of all its files.
    pub fn new(path: PathBuf, limit_bytes: u64) -> Arc<Self> {
        let limit_bytes = AtomicU64::new(limit_bytes);
        Arc::new(Self { path, used_bytes: AtomicU64::new(0), limit_bytes })
    }

    /// Changes the limit; existing files remain.
    pub fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The limit of all files.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// The size of all files.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// A new file.
    ///
    /// # Errors
    /// Errors of `open(O_TMPFILE)`.
    pub fn open(self: &Arc<Self>) -> io::Result<TempFile> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(TempFile { file: file.into(), len: 0, dir: self.clone() })
    }

    /// Counts bytes before they are written, so that shards that write at the same time stay within the
    /// limit together.
    fn reserve(&self, bytes: u64) -> io::Result<()> {
        let limit_bytes = self.limit_bytes();
        let mut used_bytes = self.used_bytes();
        loop {
            let after = used_bytes.checked_add(bytes).filter(|after| *after <= limit_bytes);
            let Some(after) = after else {
                let text = "io.max_temp_size is reached";
                return Err(io::Error::new(io::ErrorKind::StorageFull, text));
            };
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.used_bytes.compare_exchange_weak(used_bytes, after, done, failed) {
                Ok(_) => return Ok(()),
                Err(now) => used_bytes = now,
            }
        }
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl TempFile {
    /// Appends all.
    ///
    /// # Errors
    /// `StorageFull` beyond the limit; errors of `pwrite(2)`, such as a full disk.
    pub fn push(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes = slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        self.dir.reserve(bytes)?;
        if let Err(error) = self.write(slices) {
            self.dir.give_back(bytes);
            return Err(error);
        }
        self.len += bytes;
        Ok(())
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let mut at = self.len;
        for slice in slices {
            self.file.write_all_at(slice, at)?;
            at += slice.len() as u64;
        }
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
        self.dir.give_back(self.len);
    }
}

#[cfg(test)]
impl TempFile {
    /// As on a full disk, each write fails.
    fn on_a_full_disk(dir: &Arc<TempDir>) -> Self {
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
    fn files_of_all_threads_stay_within_the_limit() {
        let dir = TempDir::new("/tmp".into(), 1000);
        let threads = (0..4).map(|_| {
            let dir = dir.clone();
            std::thread::spawn(move || {
                let mut file = dir.open().unwrap();
                while file.push(&[IoSlice::new(&[0; 7])]).is_ok() {
                    assert!(dir.used_bytes() <= 1000);
                }
                file
            })
        });
        let threads: Vec<_> = threads.collect();
        let files: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(files.iter().map(TempFile::length).sum::<u64>(), 1000 / 7 * 7);
        drop(files);
        assert_eq!(dir.used_bytes(), 0);
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
