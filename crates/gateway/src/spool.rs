//! [`Spool`]: what a client has not taken yet of an answer, in an unnamed file.
//!
//! Filled and emptied by the connection that answers, which has one as soon as its client is slower
//! than what makes the answer and more than [`kept_bytes`] are left, as nginx does (`proxy_temp_file`). Invariants: what was
//! written comes out in order, as it is to be on the wire; the file has no name, so nothing of
//! it is left; what flows goes on flowing, for the file is sent while it grows.

use crate::answer::write_within;
use crate::connection::Connection;
use crate::wire::Wire;
use outboard_log::Reason;
use outboard_reactor::{is_spent, now_ms, yield_now};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::io::{self, IoSlice};
use std::path::Path;

/// Of an answer whose client is slow, so much stays in memory.
const KEPT_BYTES: usize = 64 << 10;
/// The same while memory is scarce.
const KEPT_WHILE_SCARCE_BYTES: usize = 4 << 10;
/// Most bytes that one `sendfile(2)` is asked for, so that others get their turn.
const SENDFILE_BYTES: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Spool {
    file: OwnedFd,
    written: u64,
    sent: u64,
    /// When the client has last taken something.
    taken_ms: u64,
}

/// What an attempt to send came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    Some,
    /// The client takes nothing at the moment; the task is woken.
    Nothing,
}

impl Spool {
    fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: unnamed(folder)?, written: 0, sent: 0, taken_ms: now_ms() })
    }

    fn push(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        for slice in slices {
            write_all(&self.file, slice)?;
            self.written += slice.len() as u64;
        }
        Ok(())
    }

    fn left(&self) -> u64 {
        self.written - self.sent
    }

    fn try_send(&mut self, wire: &Wire) -> io::Result<Taken> {
        if self.left() == 0 {
            return Ok(Taken::All);
        }
        let most = usize::try_from(self.left().min(SENDFILE_BYTES)).unwrap_or(usize::MAX);
        match wire.try_send_file(self.file.as_fd(), &mut self.sent, most)? {
            None => Ok(Taken::Nothing),
            Some(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Some(_) => {
                self.taken_ms = now_ms();
                Ok(if self.left() == 0 { Taken::All } else { Taken::Some })
            }
        }
    }
}

impl Connection {
    /// Writes the output and these behind it. What a slow client does not take of much goes to its
    /// spool, to be sent by [`Connection::send_spool`] or [`Connection::unspool`]. False when the client is gone.
    pub(crate) async fn put(&mut self, behind: [&[u8]; 3]) -> bool {
        let out = std::mem::take(&mut self.buffers().output);
        let [first, second, third] = behind.map(IoSlice::new);
        let put = self.put_slices(&mut [IoSlice::new(&out), first, second, third]).await;
        if self.spool.is_none() {
            // Who is slow does without.
            self.buffers().output = out;
            self.buffers().output.clear();
        }
        self.note_lost(put)
    }

    async fn put_slices(&mut self, mut slices: &mut [IoSlice<'_>]) -> Result<(), Reason> {
        if let Some(spool) = &mut self.spool {
            return spool.push(slices).map_err(|error| self.spool_failed(&error));
        }
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.wire.try_write(slices) {
                Ok(Some(count)) => IoSlice::advance_slices(&mut slices, count),
                // Others have their turn, and nobody is slow.
                Ok(None) if is_spent() => yield_now().await,
                Ok(None) => break,
                Err(_) => return Err(Reason::ClientGone),
            }
        }
        if slices.iter().map(|slice| slice.len()).sum::<usize>() > kept_bytes(self) {
            // Without a file it stays where it is.
            if let Ok(mut spool) = Spool::new(&self.gateway.spool_folder) {
                spool.push(slices).map_err(|error| self.spool_failed(&error))?;
                self.spool = Some(spool);
                return Ok(());
            }
        }
        write_within(&self.wire, slices, &mut self.pace).await
    }

    fn spool_failed(&self, error: &io::Error) -> Reason {
        self.gateway.log_refusal(None, 0, Reason::SpoolFailed, &error.to_string());
        Reason::SpoolFailed
    }

    /// How much the client has not taken.
    pub(crate) fn spooled_bytes(&self) -> usize {
        self.spool.as_ref().map_or(0, |spool| usize::try_from(spool.left()).unwrap_or(usize::MAX))
    }

    /// When a client is given up that takes nothing until then; `None` for one that was left nothing.
    pub(crate) fn spool_until_ms(&self) -> Option<u64> {
        let timeout_ms = self.gateway.limits().write_timeout_ms;
        self.spool.as_ref().map(|spool| spool.taken_ms + timeout_ms)
    }

    /// Sends what the client takes of its spool now.
    ///
    /// # Errors
    /// The client is gone.
    pub(crate) fn send_spool(&mut self) -> Result<Taken, Reason> {
        let Some(spool) = &mut self.spool else { return Ok(Taken::All) };
        let before = spool.sent;
        let taken = spool.try_send(&self.wire).map_err(|_| Reason::ClientGone)?;
        self.pace.count(usize::try_from(spool.sent - before).unwrap_or(usize::MAX));
        if taken == Taken::All {
            self.spool = None;
        }
        Ok(taken)
    }

    /// Waits until the client has taken all. False when it is gone.
    pub(crate) async fn unspool(&mut self) -> bool {
        loop {
            match self.send_spool() {
                Ok(Taken::All) => return true,
                Ok(Taken::Some) => {}
                Ok(Taken::Nothing) => {
                    if self.pace.wait(self.wire.writable()).await.is_err() {
                        return self.note_lost(Err(Reason::WriteTimeout));
                    }
                }
                Err(reason) => return self.note_lost(Err(reason)),
            }
        }
    }
}

fn kept_bytes(connection: &Connection) -> usize {
    match connection.gateway.memory.is_scarce() {
        true => KEPT_WHILE_SCARCE_BYTES,
        false => KEPT_BYTES,
    }
}

/// An unnamed file in a folder.
///
/// # Errors
/// What `open(O_TMPFILE)` reports.
pub(crate) fn unnamed(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?)
}

/// Appends all.
///
/// # Errors
/// What `write(2)` reports, a full disk for one.
pub(crate) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = rustix::io::write(file, bytes)?;
        bytes = &bytes[count..];
    }
    Ok(())
}
