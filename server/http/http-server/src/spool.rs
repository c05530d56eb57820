//! [`Spool`]: the part of a response that a slow client has not read yet.
//!
//! A connection creates one when its client is slower than the script or upstream that sends the
//! response: the source is done once the response is spooled, not once it was read (nginx's
//! `proxy_buffering`, `proxy_temp_file`). The beginning is in memory, the rest beyond `memory_bytes` in
//! a file. Invariants: bytes are sent in order; memory is counted, and files stay within
//! `io.max_temp_size`; without room the source waits.

use crate::transport::Transport;
use outboard_buffer::{Account, Held};
use outboard_buffer::{TempDir, TempFile};
use outboard_log::Reason;
use outboard_reactor::now_ms;
use rustix::fd::AsFd;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

/// One response may use this fraction of `io.max_temp_size`.
const RESPONSE_SHARE: u64 = 16;
/// Bytes of one `sendfile(2)`, after which other tasks run.
const SENDFILE_BYTES: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Spool {
    /// The part before the file.
    first: Vec<u8>,
    first_sent: usize,
    /// Counts `first`.
    held: Held,
    file: Option<TempFile>,
    file_sent: u64,
    /// When the client last read something.
    pub(crate) read_ms: u64,
}

/// The progress of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    Some,
    /// The client reads nothing now; the task is woken.
    Nothing,
}

impl Spool {
    pub(crate) fn new(account: &Rc<Account>) -> Self {
        Self {
            first: Vec::new(),
            first_sent: 0,
            held: account.hold(0),
            file: None,
            file_sent: 0,
            read_ms: now_ms(),
        }
    }

    /// Appends all, or nothing.
    ///
    /// # Errors
    /// There is no room in memory or on disk.
    pub(crate) fn push(
        &mut self,
        slices: &[IoSlice<'_>],
        memory_bytes: usize,
        folder: &Arc<TempDir>,
    ) -> io::Result<()> {
        let bytes = slices.iter().map(|slice| slice.len()).sum::<usize>();
        if self.file.is_none() && self.first.len() + bytes <= memory_bytes {
            self.first.reserve(bytes);
            slices.iter().for_each(|slice| self.first.extend_from_slice(slice));
            self.held.grow(bytes);
            return Ok(());
        }
        let file_bytes = self.file.as_ref().map_or(0, TempFile::length) + bytes as u64;
        if file_bytes > folder.limit_bytes() / RESPONSE_SHARE {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match &mut self.file {
            Some(file) => file.push(slices),
            none => {
                let mut file = folder.open()?;
                file.push(slices)?;
                *none = Some(file);
                Ok(())
            }
        }
    }

    pub(crate) fn left(&self) -> u64 {
        let on_disk = self.file.as_ref().map_or(0, |file| file.length() - self.file_sent);
        (self.first.len() - self.first_sent) as u64 + on_disk
    }

    pub(crate) fn try_send(&mut self, transport: &Transport) -> Result<Taken, Reason> {
        let left = self.left();
        if left == 0 {
            return Ok(Taken::All);
        }
        let sent = match &self.file {
            Some(file) if self.first.is_empty() => {
                let most = usize::try_from(left.min(SENDFILE_BYTES)).unwrap_or(usize::MAX);
                transport.try_send_file(file.as_fd(), &mut self.file_sent, most)
            }
            _ => transport.try_write(&[IoSlice::new(&self.first[self.first_sent..])]),
        };
        match sent.map_err(|_| Reason::ClientGone)? {
            None => return Ok(Taken::Nothing),
            // The file became shorter.
            Some(0) => return Err(Reason::SpoolFailed),
            Some(count) if !self.first.is_empty() => self.first_sent += count,
            Some(_) => {}
        }
        if self.first_sent == self.first.len() {
            (self.first, self.first_sent) = (Vec::new(), 0);
            self.held.shrink(usize::MAX);
        }
        self.read_ms = now_ms();
        Ok(if self.left() == 0 { Taken::All } else { Taken::Some })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::pipe::Pipe;
    use outboard_reactor::run;

    const MEMORY_BYTES: usize = 64 << 10;

    /// Distinguishable pieces.
    fn piece(number: u8) -> Vec<u8> {
        vec![number; 30 << 10]
    }

    pub(crate) fn push(spool: &mut Spool, number: u8, folder: &Arc<TempDir>) -> bool {
        let piece = piece(number);
        let (first, rest) = piece.split_at(7);
        spool.push(&[IoSlice::new(first), IoSlice::new(rest)], MEMORY_BYTES, folder).is_ok()
    }

    #[test]
    fn bytes_are_sent_in_order_from_memory_and_from_disk() {
        run(async {
            let (near, far) = Pipe::pair();
            let transport = Transport::pipe(near);
            let folder = TempDir::new("/tmp".into(), 1 << 30);
            let account = Account::detached();
            let mut spool = Spool::new(&account);
            let (mut went_in, mut came_out) = (Vec::new(), Vec::new());
            for number in 0..100 {
                assert!(push(&mut spool, number, &folder));
                went_in.extend(piece(number));
                if number % 7 == 0 {
                    spool.try_send(&transport).unwrap();
                    far.try_read(&mut came_out);
                    far.release();
                }
                assert!(account.held_bytes() <= MEMORY_BYTES);
            }
            while spool.try_send(&transport).unwrap() != Taken::All {
                far.try_read(&mut came_out);
                far.release();
            }
            far.try_read(&mut came_out);
            assert!(went_in == came_out);
            drop(spool);
            assert_eq!((account.held_bytes(), folder.used_bytes()), (0, 0));
        })
        .unwrap();
    }

    #[test]
    fn memory_and_disk_are_bounded_and_released() {
        run(async {
            let folder = TempDir::new("/tmp".into(), 16 * (100 << 10));
            let account = Account::detached();
            let fill = |spool: &mut Spool, folder| (0..).find(|_| !push(spool, 1, folder)).unwrap();
            let mut spool = Spool::new(&account);
            assert_eq!(fill(&mut spool, &folder), 2 + 3, "and a sixteenth of what all may have");
            assert_eq!(account.held_bytes(), 2 * (30 << 10));
            assert_eq!(folder.used_bytes(), 3 * (30 << 10));
            folder.set_limit(91 << 10);
            let mut other = Spool::new(&account);
            assert_eq!(fill(&mut other, &folder), 2, "all have what they may have");
            drop((spool, other));
            assert_eq!((account.held_bytes(), folder.used_bytes()), (0, 0));
        })
        .unwrap();
    }

    #[test]
    fn a_full_disk_leaves_the_bytes_to_the_source() {
        run(async {
            let folder = TempDir::new("/tmp".into(), 1 << 30);
            let mut spool = Spool::new(&Account::detached());
            assert!(push(&mut spool, 0, &folder) && push(&mut spool, 1, &folder));
            folder.set_limit(0);
            assert!(!push(&mut spool, 2, &folder));
            assert_eq!(spool.left(), 2 * (30 << 10));
            let nowhere = TempDir::new("/nonexistent".into(), 1 << 30);
            let mut spool = Spool::new(&Account::detached());
            assert!(push(&mut spool, 0, &nowhere) && push(&mut spool, 1, &nowhere));
            assert!(!push(&mut spool, 2, &nowhere));
        })
        .unwrap();
    }
}
