//! [`Predecessor`]: the old server, as the new one talks to it.
//!
//! Made by the command line with the option `--take-over`, before it reads the configuration. Invariant: a
//! predecessor that has ended, for whatever reason, has left everything to this server.

use crate::link::LINK_VERSION;
use crate::message::{FromSuccessor, LinkFacts, ToSuccessor};
use outboard_reactor::{Interest, Source, now_ms, with_deadline};
use outboard_ring::control;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// The old server only has to stop accepting.
const ANSWER_MS: u64 = 10_000;
/// Its entity store may be merging files.
const RELEASE_MS: u64 = 100_000;

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
    /// The end of a link, if the old server has what only one process can have.
    pub link: Option<(OwnedFd, LinkFacts)>,
}

/// How the hand-over of what only one process can have goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// By the predecessor, or by its end.
    Over,
    /// It goes on; this server ends.
    GivenUp,
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
        Self::of_control(control)
    }

    /// The one at the other end of this socket, and what it leaves.
    pub(crate) fn of_control(control: OwnedFd) -> io::Result<(Self, Estate)> {
        let mut estate = Estate::default();
        loop {
            match control::receive(&control)? {
                Some((ToSuccessor::Sockets, sockets)) => estate.sockets.extend(sockets),
                Some((ToSuccessor::Link { version: LINK_VERSION, facts }, mut ends)) => {
                    estate.link = ends.pop().map(|end| (end, facts));
                }
                Some((ToSuccessor::Link { .. }, _)) => {
                    let predecessor = Self { control };
                    let why = "its entity store and tasks cannot be handed over to this version: \
                               restart the server instead";
                    predecessor.report_failure(why);
                    return Err(io::Error::other(why));
                }
                Some((ToSuccessor::End { files }, _)) => {
                    estate.files = files;
                    rustix::io::ioctl_fionbio(&control, true)?;
                    return Ok((Self { control }, estate));
                }
                Some(_) | None => {
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

    /// Announces that PHP has started, and waits until the predecessor has closed what only one process can
    /// have open.
    ///
    /// # Errors
    /// It does not, or the event loop cannot watch the socket.
    pub async fn prepared(&self) -> io::Result<Handed> {
        self.hand(FromSuccessor::Prepared, RELEASE_MS).await
    }

    /// Announces that this is open here, and waits for the rest, which comes by the link.
    ///
    /// # Errors
    /// As [`Predecessor::prepared`].
    pub async fn acquired(&self) -> io::Result<Handed> {
        self.hand(FromSuccessor::Acquired, RELEASE_MS).await
    }

    async fn hand(&self, message: FromSuccessor, wait_ms: u64) -> io::Result<Handed> {
        let control = Source::new(self.control.try_clone()?, Interest::Read)?;
        // If it has ended, its answer is the end of the socket.
        let _ = control::try_send(&control, &message, &[]);
        match with_deadline(now_ms() + wait_ms, answer(&control)).await {
            Ok(Answer::Next | Answer::Ended) => Ok(Handed::Over),
            Ok(Answer::GivenUp) => Ok(Handed::GivenUp),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the running server does not hand over its entity store",
            )),
        }
    }

    /// Announces that this server accepts connections, and waits until the predecessor does not.
    ///
    /// # Errors
    /// The event loop cannot watch the socket.
    pub async fn replace(&self) -> io::Result<Verdict> {
        let control = Source::new(self.control.try_clone()?, Interest::Read)?;
        // As above.
        let _ = control::try_send(&control, &FromSuccessor::Ready, &[]);
        let answer = with_deadline(now_ms() + ANSWER_MS, answer(&control)).await;
        Ok(match answer {
            Ok(Answer::GivenUp) => Verdict::GivenUp,
            Ok(Answer::Next | Answer::Ended) | Err(_) => Verdict::Ours,
        })
    }
}

/// What the predecessor replies to an announcement.
enum Answer {
    /// The next step.
    Next,
    GivenUp,
    Ended,
}

async fn answer(control: &Source) -> Answer {
    loop {
        match control::receive(control) {
            Ok(Some((ToSuccessor::GiveUp, _))) => return Answer::GivenUp,
            Ok(Some((ToSuccessor::Released | ToSuccessor::Complete | ToSuccessor::Yours, _))) => {
                return Answer::Next;
            }
            Ok(Some(_)) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                control.clear_readable();
                control.readable().await;
            }
            Ok(None) | Err(_) => return Answer::Ended,
        }
    }
}
