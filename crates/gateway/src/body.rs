//! A request body, whole, before a worker is taken: in memory, or spooled to disk when large.
//!
//! Filled by the connection, emptied by the pool into the ring. A slow upload therefore holds a
//! connection and never a worker.

use crate::memory::{Account, Held};
use crate::spool::{SpoolFile, SpoolFolder};
use outboard_log::Reason;
use std::io::{self, IoSlice};
use std::rc::Rc;

/// A body that is being collected or handed on.
#[derive(Debug)]
pub(crate) struct RequestBody {
    memory: Vec<u8>,
    spool: Option<SpoolFile>,
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

    /// One that is at hand.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len() as u64, memory: bytes, ..Self::empty() }
    }

    /// Has what is in memory counted here.
    pub(crate) fn counted_in(self, held: Held) -> Self {
        Self { held: Some(held), ..self }
    }

    /// Appends; beyond `memory_bytes` in total everything goes to a file in `folder`.
    ///
    /// # Errors
    /// What opening or writing the file reports: that the folder is full, for one.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        memory_bytes: u64,
        folder: &Rc<SpoolFolder>,
    ) -> io::Result<()> {
        self.len += bytes.len() as u64;
        if self.spool.is_none() && self.len > memory_bytes {
            let mut file = folder.open()?;
            file.push(&[IoSlice::new(&self.memory)])?;
            self.memory = Vec::new();
            self.held = None;
            self.spool = Some(file);
        }
        match &mut self.spool {
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

    /// All of it, and what counts it: of a body that was spooled if the account has room for it.
    ///
    /// # Errors
    /// There is none, or the file cannot be read.
    pub(crate) fn into_memory(self, account: &Rc<Account>) -> Result<(Vec<u8>, Held), Reason> {
        let Some(file) = self.spool else {
            let held = self.held.unwrap_or_else(|| account.hold(self.memory.len()));
            return Ok((self.memory, held));
        };
        let len = usize::try_from(self.len).map_err(|_| Reason::MemoryFull)?;
        let held = account.try_hold(len).ok_or(Reason::MemoryFull)?;
        let mut bytes = vec![0; len];
        file.read(&mut bytes, 0).map_err(|_| Reason::SpoolFailed)?;
        Ok((bytes, held))
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

    fn folder(path: &str) -> Rc<SpoolFolder> {
        SpoolFolder::new(path.into(), u64::MAX)
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
    fn a_body_comes_out_as_it_went_in_from_memory_and_from_disk() {
        for memory_bytes in [1000, 20, 0] {
            let mut body = RequestBody::empty();
            body.push(b"first piece, ", memory_bytes, &folder("/tmp")).unwrap();
            body.push(b"second piece", memory_bytes, &folder("/tmp")).unwrap();
            assert_eq!(body.len(), 25);
            assert_eq!(drain(&mut body), b"first piece, second piece");
        }
    }

    #[test]
    fn a_body_is_whole_in_memory_wherever_it_was() {
        let account = Account::detached();
        for memory_bytes in [1000, 20, 0] {
            let mut body = RequestBody::empty().counted_in(account.hold(0));
            body.push(b"first piece, ", memory_bytes, &folder("/tmp")).unwrap();
            body.push(b"second piece", memory_bytes, &folder("/tmp")).unwrap();
            let (bytes, held) = body.into_memory(&account).unwrap();
            assert_eq!((&bytes[..], held.bytes()), (&b"first piece, second piece"[..], 25));
        }
        assert_eq!(account.held_bytes(), 0);
    }

    #[test]
    fn bytes_that_were_not_taken_come_again() {
        let mut body = RequestBody::empty();
        body.push(b"abc", 10, &folder("/tmp")).unwrap();
        assert_eq!(body.next(2, |_| Ok::<_, ()>(false)).unwrap(), Ok(false));
        assert_eq!(drain(&mut body), b"abc");
    }

    #[test]
    fn a_missing_spool_folder_is_an_error() {
        let mut body = RequestBody::empty();
        assert!(body.push(b"abc", 1, &folder("/nonexistent/folder")).is_err());
    }
}
