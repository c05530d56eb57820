//! [`Uncompressed`]: a file that is to be compressed and kept.
//!
//! Taken on by [`crate::Entry::compression`] in the thread of a request, which passes the [`UnreadFile`] to
//! a thread that may wait for a disk and the bytes to one that compresses. Invariant: the bytes are those
//! of the entry's version of the file; if it has changed, there are none.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use outboard_http_semantics::Coding;

use crate::compressed_files::Claim;
use crate::content::Content;
use crate::stamp::Stamp;

/// See the module. No other thread takes the same file on while it exists.
#[derive(Debug)]
pub struct Uncompressed {
    content: Content,
    claim: Claim,
}

/// The bytes of the file, for a thread that may wait for a disk.
#[derive(Debug)]
pub struct UnreadFile(Source);

#[derive(Debug)]
enum Source {
    Memory(Vec<u8>),
    File(File, Stamp),
}

impl Uncompressed {
    pub(crate) fn new(content: Content, claim: Claim) -> Self {
        Self { content, claim }
    }

    /// The coding that a client accepts.
    pub fn coding(&self) -> Coding {
        self.claim.key.coding
    }

    /// The file, to be read by another thread.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn unread(&self) -> io::Result<UnreadFile> {
        Ok(UnreadFile(match &self.content {
            Content::Memory(bytes) => Source::Memory(bytes.to_vec()),
            Content::File(file) => Source::File(file.try_clone()?.into(), self.claim.key.stamp),
        }))
    }

    /// Keeps the compressed bytes; `None` if the coding does not make the file smaller.
    pub fn keep(self, compressed: Option<Vec<u8>>) {
        self.claim.keep(compressed.unwrap_or_default().into());
    }
}

impl UnreadFile {
    /// Reads the whole file; `None` if it has changed, or cannot be read.
    pub fn read(self) -> Option<Vec<u8>> {
        let (file, stamp) = match self.0 {
            Source::Memory(bytes) => return Some(bytes),
            Source::File(file, stamp) => (file, stamp),
        };
        let is_same =
            || rustix::fs::fstat(&file).is_ok_and(|stat| Stamp::of_file(&stat) == Some(stamp));
        if !is_same() {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(stamp.size).ok()?];
        file.read_exact_at(&mut bytes, 0).ok()?;
        is_same().then_some(bytes)
    }
}

#[cfg(test)]
mod tests;
