//! A request body, whole, before a worker is taken: in memory, or spooled to disk when large.
//!
//! Filled by the connection, emptied by the pool into the ring. A slow upload therefore holds a
//! connection and never a worker.

use crate::memory::Held;
use crate::spool::{unnamed, write_all};
use rustix::fd::OwnedFd;
use std::io;
use std::path::Path;

/// A body that is being collected or handed on.
#[derive(Debug)]
pub(crate) struct RequestBody {
    memory: Vec<u8>,
    spool: Option<OwnedFd>,
    len: u64,
    read: u64,
    /// Counts what is in memory.
    held: Option<Held>,
}

impl RequestBody {
    /// No body yet.
    pub(crate) fn empty() -> Self {
        Self { memory: Vec::new(), spool: None, len: 0, read: 0, held: None }
    }

    /// Has what is in memory counted here.
    pub(crate) fn counted_in(self, held: Held) -> Self {
        Self { held: Some(held), ..self }
    }

    /// Appends; beyond `memory_bytes` in total everything goes to an unnamed file in `folder`.
    ///
    /// # Errors
    /// What `open(O_TMPFILE)` or `write(2)` report, a full disk for one.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        memory_bytes: u64,
        folder: &Path,
    ) -> io::Result<()> {
        self.len += bytes.len() as u64;
        if self.spool.is_none() && self.len > memory_bytes {
            let file = unnamed(folder)?;
            write_all(&file, &self.memory)?;
            self.memory = Vec::new();
            self.held = None;
            self.spool = Some(file);
        }
        match &self.spool {
            Some(file) => write_all(file, bytes),
            None => {
                self.memory.extend_from_slice(bytes);
                if let Some(held) = &mut self.held {
                    held.grow(bytes.len());
                }
                Ok(())
            }
        }
    }

    /// What is in memory of it: all of a body that was not spooled.
    pub(crate) fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Bytes in total.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Begins anew: whoever had read of it does not answer.
    pub(crate) fn rewind(&mut self) {
        self.read = 0;
    }

    /// Whether there is no body, or nothing is left of it.
    pub(crate) fn is_spent(&self) -> bool {
        self.read == self.len
    }

    /// Calls `take` with the next bytes, at most `most`; they count as read when it returns true.
    ///
    /// # Errors
    /// What `pread(2)` reports; `UnexpectedEof` when the spool became shorter.
    pub(crate) fn next<E>(
        &mut self,
        most: usize,
        take: impl FnOnce(&[u8]) -> Result<bool, E>,
    ) -> io::Result<Result<bool, E>> {
        let left = usize::try_from(self.len - self.read).unwrap_or(usize::MAX).min(most);
        let taken = match &self.spool {
            None => {
                let from = self.read as usize;
                take(&self.memory[from..from + left])
            }
            Some(file) => {
                let mut piece = vec![0; left];
                let mut filled = 0;
                while filled < left {
                    let at = self.read + filled as u64;
                    let count = rustix::io::pread(file, &mut piece[filled..], at)?;
                    if count == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    filled += count;
                }
                take(&piece)
            }
        };
        if let Ok(true) = taken {
            self.read += left as u64;
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(body: &mut RequestBody) -> Vec<u8> {
        let mut all = Vec::new();
        while !body.is_spent() {
            let taken = body.next(7, |piece| {
                all.extend_from_slice(piece);
                Ok::<_, ()>(true)
            });
            assert_eq!(taken.unwrap(), Ok(true));
        }
        all
    }

    #[test]
    fn a_body_comes_out_as_it_went_in_from_memory_and_from_disk() {
        for memory_bytes in [1000, 20, 0] {
            let mut body = RequestBody::empty();
            body.push(b"first piece, ", memory_bytes, Path::new("/tmp")).unwrap();
            body.push(b"second piece", memory_bytes, Path::new("/tmp")).unwrap();
            assert_eq!(body.len(), 25);
            assert_eq!(drain(&mut body), b"first piece, second piece");
        }
    }

    #[test]
    fn bytes_that_were_not_taken_come_again() {
        let mut body = RequestBody::empty();
        body.push(b"abc", 10, Path::new("/tmp")).unwrap();
        assert_eq!(body.next(2, |_| Ok::<_, ()>(false)).unwrap(), Ok(false));
        assert_eq!(drain(&mut body), b"abc");
    }

    #[test]
    fn a_missing_spool_folder_is_an_error() {
        let mut body = RequestBody::empty();
        assert!(body.push(b"abc", 1, Path::new("/nonexistent/folder")).is_err());
    }
}
