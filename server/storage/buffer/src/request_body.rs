//! [`RequestBody`]: a complete request body, in memory or, if it is large, in a temporary file.
//!
//! The connection fills it, and the pool reads it into a worker's ring. A slow upload therefore
//! occupies a connection and never a worker.

use crate::account::{Account, Held};
use crate::temp_dir::{TempDir, TempFile};
use outboard_log::Reason;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct RequestBody {
    memory: Vec<u8>,
    file: Option<TempFile>,
    len: u64,
    read: u64,
    /// Counts `memory`.
    held: Option<Held>,
}

impl RequestBody {
    /// No body yet.
    pub fn empty() -> Self {
        Self { memory: Vec::new(), file: None, len: 0, read: 0, held: None }
    }

    /// A body in memory.
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len() as u64, memory: bytes, ..Self::empty() }
    }

    /// Counts the part in memory here.
    pub fn counted_in(self, held: Held) -> Self {
        Self { held: Some(held), ..self }
    }

    /// Appends; beyond `memory_bytes` in total everything is in a file in `dir`.
    ///
    /// # Errors
    /// Errors of opening or writing the file, for example that the directory is full.
    pub fn push(&mut self, bytes: &[u8], memory_bytes: u64, dir: &Arc<TempDir>) -> io::Result<()> {
        self.len += bytes.len() as u64;
        if self.file.is_none() && self.len > memory_bytes {
            let mut file = dir.open()?;
            file.push(&[IoSlice::new(&self.memory)])?;
            self.memory = Vec::new();
            self.held = None;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.push(&[IoSlice::new(bytes)]),
            None => {
                self.memory.extend_from_slice(bytes);
                if let Some(held) = &mut self.held {
                    held.grow(bytes.len());
                }
                Ok(())
            }
        }
    }

    /// The whole body and its account. A body on disk is read only if the account has room for it.
    ///
    /// # Errors
    /// The account has no room, or the file cannot be read.
    pub fn into_memory(self, account: &Rc<Account>) -> Result<(Vec<u8>, Held), Reason> {
        let Some(file) = self.file else {
            let held = self.held.unwrap_or_else(|| account.hold(self.memory.len()));
            return Ok((self.memory, held));
        };
        let len = usize::try_from(self.len).map_err(|_| Reason::MemoryFull)?;
        let held = account.try_hold(len).ok_or(Reason::MemoryFull)?;
        let mut bytes = vec![0; len];
        file.read(&mut bytes, 0).map_err(|_| Reason::SpoolFailed)?;
        Ok((bytes, held))
    }

    /// The part in memory: all of a body that is not on disk.
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Bytes in total.
    pub fn length(&self) -> u64 {
        self.len
    }

    /// Starts reading again: the previous reader does not respond.
    pub fn rewind(&mut self) {
        self.read = 0;
    }

    /// Whether there is no body, or nothing is left of it.
    pub fn is_spent(&self) -> bool {
        self.read == self.len
    }

    /// Calls `take` with the next bytes, at most `most`; they count as read when it returns true.
    ///
    /// # Errors
    /// Errors of `pread(2)`; `UnexpectedEof` if the file became shorter.
    pub fn next<E>(
        &mut self,
        most: usize,
        take: impl FnOnce(&[u8]) -> Result<bool, E>,
    ) -> io::Result<Result<bool, E>> {
        let left = usize::try_from(self.len - self.read).unwrap_or(usize::MAX).min(most);
        let taken = match &self.file {
            None => {
                let from = self.read as usize;
                take(&self.memory[from..from + left])
            }
            Some(file) => {
                let mut piece = vec![0; left];
                file.read(&mut piece, self.read)?;
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

    fn dir(path: &str) -> Arc<TempDir> {
        TempDir::new(path.into(), u64::MAX)
    }

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
    fn a_body_is_read_as_it_was_written() {
        for memory_bytes in [1000, 20, 0] {
            let mut body = RequestBody::empty();
            body.push(b"first piece, ", memory_bytes, &dir("/tmp")).unwrap();
            body.push(b"second piece", memory_bytes, &dir("/tmp")).unwrap();
            assert_eq!(body.length(), 25);
            assert_eq!(drain(&mut body), b"first piece, second piece");
        }
    }

    #[test]
    fn a_body_on_disk_can_be_read_into_memory() {
        let account = Account::detached();
        for memory_bytes in [1000, 20, 0] {
            let mut body = RequestBody::empty().counted_in(account.hold(0));
            body.push(b"first piece, ", memory_bytes, &dir("/tmp")).unwrap();
            body.push(b"second piece", memory_bytes, &dir("/tmp")).unwrap();
            let (bytes, held) = body.into_memory(&account).unwrap();
            assert_eq!((&bytes[..], held.bytes()), (&b"first piece, second piece"[..], 25));
        }
        assert_eq!(account.held_bytes(), 0);
    }

    #[test]
    fn bytes_that_were_not_taken_are_offered_again() {
        let mut body = RequestBody::empty();
        body.push(b"abc", 10, &dir("/tmp")).unwrap();
        assert_eq!(body.next(2, |_| Ok::<_, ()>(false)).unwrap(), Ok(false));
        assert_eq!(drain(&mut body), b"abc");
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let mut body = RequestBody::empty();
        assert!(body.push(b"abc", 1, &dir("/nonexistent/dir")).is_err());
    }

    #[test]
    fn a_body_is_counted_while_it_is_in_memory() {
        let (account, dir) = (Account::detached(), dir("/tmp"));
        let mut body = RequestBody::empty().counted_in(account.hold(0));
        body.push(b"in memory", 10, &dir).unwrap();
        assert_eq!((account.held_bytes(), dir.used_bytes()), (9, 0));
        body.push(b", on disk", 10, &dir).unwrap();
        assert_eq!((account.held_bytes(), dir.used_bytes()), (0, 18));
        assert!(body.memory().is_empty());
        drop(body);
        assert_eq!(dir.used_bytes(), 0);
    }

    #[test]
    fn a_body_on_disk_is_read_only_if_there_is_room() {
        let dir = dir("/tmp");
        let mut body = RequestBody::empty();
        body.push(b"0123456789", 1, &dir).unwrap();
        let small = crate::Memory::new(8);
        assert_eq!(body.into_memory(small.bodies()).unwrap_err(), Reason::MemoryFull);
        assert_eq!((small.held_bytes(), dir.used_bytes()), (0, 0));
    }
}
