//! [`Segment`]: the file of the journal that is being written.
//!
//! Used by the committer and the preallocator. Invariant: a segment that exists has a synced head and a
//! synced folder.

use super::frame::Frame;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const MAGIC: &[u8; 8] = b"OBENTJ1\n";
pub(super) const HEAD_BYTES: u64 = 16;

/// The segment that is being written.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) folder: PathBuf,
    number: u64,
    salt: u64,
    file: Arc<File>,
    /// The offset of the next frame.
    pub(super) end: u64,
    pub(super) reserve_bytes: u64,
}

impl Segment {
    /// Creates a segment with `reserve_bytes` preallocated.
    ///
    /// # Errors
    /// The file system fails, or the disk is full.
    pub(crate) fn create(folder: &Path, number: u64, reserve_bytes: u64) -> io::Result<Self> {
        let path = segment_path(folder, number);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&path)?;
        let begun = begin(&file, reserve_bytes).and_then(|salt| {
            File::open(folder)?.sync_all()?;
            Ok(salt)
        });
        let salt = begun.inspect_err(|_| {
            // A segment that cannot be removed is empty when it is replayed.
            let _ = std::fs::remove_file(&path);
        })?;
        let folder = folder.to_owned();
        Ok(Self { folder, number, salt, file: Arc::new(file), end: HEAD_BYTES, reserve_bytes })
    }

    /// The number of the segment.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The file, for the syncer.
    pub(crate) fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Writes a frame. After a failure the next frame overwrites it.
    ///
    /// # Errors
    /// `pwrite(2)` fails.
    pub(crate) fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        let bytes = frame.seal(self.salt);
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Waits until all frames are on the disk.
    ///
    /// # Errors
    /// `fdatasync(2)` fails. The content of the disk is unknown then.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Creates the next segment.
    ///
    /// # Errors
    /// As [`Segment::create`].
    pub(crate) fn next(&self) -> io::Result<Self> {
        Self::create(&self.folder, self.number + 1, self.reserve_bytes)
    }
}

fn begin(file: &File, reserve_bytes: u64) -> io::Result<u64> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, reserve_bytes) {
        // Without support of the file system each write may find the disk full.
        Err(rustix::io::Errno::OPNOTSUPP) => {}
        other => other?,
    }
    let mut salt = [0; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut salt)?;
    file.write_all_at(MAGIC, 0)?;
    file.write_all_at(&salt, 8)?;
    file.sync_all()?;
    Ok(u64::from_le_bytes(salt))
}

pub(crate) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.journal"))
}

/// The segments in a folder, oldest first.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn segments(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_suffix(".journal")?.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}
