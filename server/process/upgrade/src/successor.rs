//! [`Successor`]: the new server, as the old one talks to it.
//!
//! Returned by [`crate::Starter::start`] and used on the event loop. Invariant: nothing here waits for the
//! successor without being a future.

use crate::link::LINK_VERSION;
use crate::message::{FromSuccessor, LinkFacts, ToSuccessor};
use outboard_reactor::{Interest, Source};
use outboard_ring::control;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::path::PathBuf;

const ENDED: &str = "the new program has ended; see the lines before";
/// As many as a message carries.
const SOCKETS_PER_MESSAGE: usize = 4;

/// What the successor has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// PHP has started; it waits for [`Successor::released`].
    Prepared,
    /// It has opened the entity store, and waits for [`Successor::complete`].
    Acquired,
    /// It accepts connections.
    Ready,
}

/// See the module. Dropped before [`Successor::leave_to`], it gives up.
#[derive(Debug)]
pub struct Successor {
    control: Source,
    pid: u32,
    is_done: bool,
}

impl Successor {
    pub(crate) fn new(control: OwnedFd, pid: u32) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&control, true)?;
        Ok(Self { control: Source::new(control, Interest::Read)?, pid, is_done: false })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends the sockets, the end of a link, and the files that it is to remove at its end. If it has ended,
    /// [`Successor::stage`] says so.
    ///
    /// # Errors
    /// There are more sockets than wait in the kernel at a time.
    pub fn bequeath(
        &self,
        sockets: &[OwnedFd],
        link: Option<(OwnedFd, LinkFacts)>,
        files: Vec<PathBuf>,
    ) -> io::Result<()> {
        match self.send_all(sockets, link, files) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    fn send_all(
        &self,
        sockets: &[OwnedFd],
        link: Option<(OwnedFd, LinkFacts)>,
        files: Vec<PathBuf>,
    ) -> io::Result<()> {
        if let Some((socket, facts)) = link {
            let message = ToSuccessor::Link { version: LINK_VERSION, facts };
            control::try_send(&self.control, &message, &[socket.as_fd()])?;
        }
        for some in sockets.chunks(SOCKETS_PER_MESSAGE) {
            let some: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
            control::try_send(&self.control, &ToSuccessor::Sockets, &some)?;
        }
        control::try_send(&self.control, &ToSuccessor::End { files }, &[])
    }

    /// Reports that the entity store is closed.
    pub fn released(&self) {
        // If it has ended, the next stage is an error.
        let _ = control::try_send(&self.control, &ToSuccessor::Released, &[]);
    }

    /// Reports that everything was sent by the link.
    pub fn complete(&self) {
        // As above.
        let _ = control::try_send(&self.control, &ToSuccessor::Complete, &[]);
    }

    /// Waits for the next stage of its start.
    ///
    /// # Errors
    /// Why it does not start, in a sentence.
    pub async fn stage(&self) -> Result<Stage, String> {
        loop {
            match control::receive(&self.control) {
                Ok(Some((FromSuccessor::Prepared, _))) => return Ok(Stage::Prepared),
                Ok(Some((FromSuccessor::Acquired, _))) => return Ok(Stage::Acquired),
                Ok(Some((FromSuccessor::Ready, _))) => return Ok(Stage::Ready),
                Ok(Some((FromSuccessor::Failed { why }, _))) => return Err(why),
                Ok(None) => return Err(ENDED.to_owned()),
                // It has not read everything.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(ENDED.to_owned());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.control.clear_readable();
                    self.control.readable().await;
                }
                Err(error) => return Err(format!("the new program does not respond: {error}")),
            }
        }
    }

    /// Leaves everything to it: this server accepts no more connections.
    pub fn leave_to(mut self) {
        self.is_done = true;
        // If it has ended meanwhile, there is nothing that this server could do.
        let _ = control::try_send(&self.control, &ToSuccessor::Yours, &[]);
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.is_done {
            // If it has ended, it has given up.
            let _ = control::try_send(&self.control, &ToSuccessor::GiveUp, &[]);
        }
    }
}
