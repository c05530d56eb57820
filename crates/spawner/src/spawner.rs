//! The gateway's end: a spawner that was started, and what it is asked.
//!
//! Made by the gateway while it is root, used by it from its loop and from the thread that reads the
//! configuration at a reload. Invariant: an answer is waited for, but not for ever; a spawner that
//! does not answer counts as gone.

use crate::child::Child;
use crate::grants::Grants;
use crate::order::{Answer, Order};
use outboard_ring::control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// The hidden command of `outboard` that calls [`crate::run`].
pub const COMMAND: &str = "spawner";

/// It only forks and opens; a machine that takes longer is beyond help.
const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// A running spawner. It leaves when this is dropped.
#[derive(Debug)]
pub struct Spawner {
    control: Mutex<OwnedFd>,
    _process: Mutex<std::process::Child>,
}

impl Spawner {
    /// Starts `program` as the spawner, which takes root, and tells it what it may be asked for.
    ///
    /// # Errors
    /// It cannot be started, or does not answer.
    pub fn start(program: &Path, grants: Grants) -> io::Result<Arc<Self>> {
        let (control, theirs) = control::pair()?;
        let process = Command::new(program)
            .arg(COMMAND)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let spawner = Self { control: Mutex::new(control), _process: Mutex::new(process) };
        spawner.ask(&Order::Begin(grants), &[])?;
        Ok(Arc::new(spawner))
    }

    /// A descriptor that hangs up when the spawner has gone.
    ///
    /// # Errors
    /// What `fcntl(2)` reports.
    pub fn watch(&self) -> io::Result<OwnedFd> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }

    /// Starts a PHP host as a user.
    ///
    /// # Errors
    /// The user or the program was not granted, or what `execve(2)` reports.
    pub fn spawn(
        self: &Arc<Self>,
        program: &Path,
        user: (u32, u32),
        input: BorrowedFd<'_>,
        output: BorrowedFd<'_>,
    ) -> io::Result<Child> {
        let (uid, gid) = user;
        let order = Order::Start { program: program.to_owned(), uid, gid };
        match self.ask(&order, &[input, output])? {
            (Answer::Started { number, pid }, _) => Ok(Child::new(self.clone(), number, pid)),
            _ => Err(misunderstood()),
        }
    }

    /// Opens a file that was granted, as root would.
    ///
    /// # Errors
    /// It was not granted, or what `open(2)` reports.
    pub fn read(&self, path: &Path) -> io::Result<File> {
        self.open(&Order::Read(path.to_owned()))
    }

    /// Opens a log that was granted, as root would.
    ///
    /// # Errors
    /// As [`Spawner::read`], and [`crate::open_log`].
    pub fn append(&self, path: &Path) -> io::Result<File> {
        self.open(&Order::Append(path.to_owned()))
    }

    /// Removes a file that was granted as one that the server leaves behind.
    ///
    /// # Errors
    /// It was not granted, or what `unlink(2)` reports.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask(&Order::Remove(path.to_owned()), &[]).map(drop)
    }

    fn open(&self, order: &Order) -> io::Result<File> {
        match self.ask(order, &[])? {
            (Answer::Opened, mut opened) => opened.pop().map(File::from).ok_or_else(misunderstood),
            _ => Err(misunderstood()),
        }
    }

    pub(crate) fn ask(
        &self,
        order: &Order,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(Answer, Vec<OwnedFd>)> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        control::send(&*control, order, descriptors)?;
        let answered = loop {
            let mut ready = [PollFd::new(&*control, PollFlags::IN)];
            match poll(&mut ready, Some(&PATIENCE)) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?,
            }
        };
        if answered == 0 {
            // A late answer would be taken for that to the next order.
            let _ = rustix::net::shutdown(control.as_fd(), rustix::net::Shutdown::Both);
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the spawner does not answer"));
        }
        match control::receive(&*control)? {
            Some((Answer::Failed { why, errno }, _)) => Err(match errno {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::new(io::ErrorKind::Unsupported, why),
            }),
            Some(answer) => Ok(answer),
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the spawner has gone")),
        }
    }
}

fn misunderstood() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the spawner answered something else")
}
