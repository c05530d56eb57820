//! [`Predecessor`]: the old server, as the new one talks to it.
//!
//! Made by the command line with the option `--take-over`, before it reads the configuration. Invariant: a
//! predecessor that has ended, for whatever reason, has left everything to this server.

use crate::message::{FromSuccessor, ToSuccessor};
use outboard_reactor::{Interest, Source, now_ms, with_deadline};
use outboard_ring::control;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// The old server only has to stop accepting.
const ANSWER_MS: u64 = 10_000;

/// See the module.
#[derive(Debug)]
pub struct Predecessor {
    control: OwnedFd,
}

/// What it leaves.
#[derive(Debug, Default)]
pub struct Estate {
    /// Sockets that listen, and those of datagrams.
    pub sockets: Vec<OwnedFd>,
    /// Files of Unix sockets, which the server removes at its end.
    pub files: Vec<PathBuf>,
}

/// How an upgrade has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The predecessor accepts no more connections.
    Ours,
    /// It goes on; this server ends.
    GivenUp,
}

impl Predecessor {
    /// The one at the other end of standard input, and what it leaves.
    ///
    /// # Errors
    /// There is none, or it has ended.
    pub fn of_stdin() -> io::Result<(Self, Estate)> {
        let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        let mut estate = Estate::default();
        loop {
            match control::receive(&control)? {
                Some((ToSuccessor::Sockets, sockets)) => estate.sockets.extend(sockets),
                Some((ToSuccessor::End { files }, _)) => {
                    estate.files = files;
                    rustix::io::ioctl_fionbio(&control, true)?;
                    return Ok((Self { control }, estate));
                }
                Some((ToSuccessor::Yours | ToSuccessor::GiveUp, _)) | None => {
                    return Err(io::Error::other("the running server has given up"));
                }
            }
        }
    }

    /// Reports why this server does not start.
    pub fn report_failure(&self, why: &str) {
        let why = why.chars().take(4_000).collect();
        let _ = control::try_send(&self.control, &FromSuccessor::Failed { why }, &[]);
    }

    /// Announces that this server accepts connections, and waits until the predecessor does not.
    ///
    /// # Errors
    /// The event loop cannot watch the socket.
    pub async fn replace(&self) -> io::Result<Verdict> {
        let control = Source::new(self.control.try_clone()?, Interest::Read)?;
        // If it has ended, its answer is the end of the socket.
        let _ = control::try_send(&control, &FromSuccessor::Ready, &[]);
        let answer = with_deadline(now_ms() + ANSWER_MS, answer(&control)).await;
        Ok(answer.unwrap_or(Verdict::Ours))
    }
}

async fn answer(control: &Source) -> Verdict {
    loop {
        match control::receive(control) {
            Ok(Some((ToSuccessor::GiveUp, _))) => return Verdict::GivenUp,
            Ok(Some((ToSuccessor::Sockets | ToSuccessor::End { .. }, _))) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                control.clear_readable();
                control.readable().await;
            }
            Ok(Some((ToSuccessor::Yours, _)) | None) | Err(_) => return Verdict::Ours,
        }
    }
}
