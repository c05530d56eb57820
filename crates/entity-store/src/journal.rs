//! The journal: what was written and is not yet in a sorted file, in segments.
//!
//! Written by the committer, a frame a batch; read once, when the namespace opens. Invariants: a
//! frame whose checksum does not match is never believed, and nothing behind it is lost for that:
//! reading goes on at the next frame that is whole. What is cut at the end was never answered.
//!
//! ```text
//!  segment:  "OBENTJ1\n" │ u64 salt │ frame …  │ zeros (room that was reserved)
//!  frame:    u32 MAGIC │ u32 length │ u64 checksum of length and entries, seeded by the salt │ entries
//!  entry:    u8 kind │ u64 version │ u64 expires_ms │ u32 id length │ u32 value length │ id │ value
//! ```
//!
//! The salt keeps a value that looks like a frame from ever being taken for one.

mod ahead;
mod frame;
mod replay;

pub(crate) use ahead::Ahead;
pub(crate) use frame::Frame;
#[cfg(fuzzing)]
pub(crate) use replay::replay_bytes;
pub(crate) use replay::{Flaw, replay};

use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SEGMENT_MAGIC: &[u8; 8] = b"OBENTJ1\n";
const HEAD_BYTES: u64 = 16;

/// The segment that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    number: u64,
    salt: u64,
    file: Arc<File>,
    /// Where the next frame goes.
    end: u64,
    reserve_bytes: u64,
}

impl Journal {
    /// Begins a segment, with room for `reserve_bytes`.
    ///
    /// # Errors
    /// What the file system says; a full disk among that, before anything is promised.
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
            // Nothing was written to it; what cannot be removed is empty when it is read.
            let _ = std::fs::remove_file(&path);
        })?;
        let folder = folder.to_owned();
        Ok(Self { folder, number, salt, file: Arc::new(file), end: HEAD_BYTES, reserve_bytes })
    }

    /// The number that its file is named by.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The file, for whoever syncs it beside the committer.
    pub(crate) fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Writes a frame. When that fails, nothing of it counts: the next one takes its place.
    ///
    /// # Errors
    /// What `pwrite(2)` says.
    pub(crate) fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        let bytes = frame.seal(self.salt);
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Waits until all frames are on the disk.
    ///
    /// # Errors
    /// What `fdatasync(2)` says. What is on the disk then is unknown.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Begins the segment behind this one.
    ///
    /// # Errors
    /// As [`Journal::create`].
    pub(crate) fn next(&self) -> io::Result<Self> {
        Self::create(&self.folder, self.number + 1, self.reserve_bytes)
    }
}

fn begin(file: &File, reserve_bytes: u64) -> io::Result<u64> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, reserve_bytes) {
        // Not every file system can; then a full disk is noticed by each write.
        Err(rustix::io::Errno::OPNOTSUPP) => {}
        other => other?,
    }
    let mut salt = [0; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut salt)?;
    file.write_all_at(SEGMENT_MAGIC, 0)?;
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

#[cfg(test)]
mod tests;
