//! [`Spawner`]: the gateway's handle of a running spawner.
//!
//! Created by the gateway while it is root; used from its event loop, and from the thread that
//! reads the configuration at a reload.

use crate::child::Child;
use crate::client::Client;
use crate::grants::Grants;
use crate::message::{Request, Response};
use outboard_ring::control::{self, ControlGroup};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The hidden command of `outboard` that calls [`crate::run`].
pub const COMMAND: &str = "spawner";

/// A running spawner. It exits when this and all of its children are dropped.
#[derive(Debug)]
pub struct Spawner {
    client: Arc<Client>,
}

impl Spawner {
    /// Starts `program` as the spawner, which requires root, and sends it the grants.
    ///
    /// # Errors
    /// The spawner cannot be started, or does not respond.
    pub fn start(program: &Path, grants: Grants) -> io::Result<Arc<Self>> {
        let (control, of_spawner) = control::pair()?;
        let process = Command::new(program)
            .arg(COMMAND)
            .env_clear()
            .stdin(Stdio::from(of_spawner))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let client = Arc::new(Client::new(control, process));
        client.call(&Request::Begin(grants), &[])?;
        Ok(Arc::new(Self { client }))
    }

    /// A descriptor that hangs up when the spawner exits.
    ///
    /// # Errors
    /// `fcntl(2)` fails.
    pub fn watch(&self) -> io::Result<OwnedFd> {
        self.client.watch()
    }

    /// Starts a PHP host as a user, in the control group of its app. Waits for the spawner, and for those that wait for it already.
    ///
    /// # Errors
    /// The user or the program was not granted, or `execve(2)` fails.
    pub fn spawn(
        &self,
        program: &Path,
        user: (u32, u32),
        group: Option<&ControlGroup>,
        input: BorrowedFd<'_>,
        output: BorrowedFd<'_>,
    ) -> io::Result<Child> {
        let (uid, gid) = user;
        let group = group.cloned();
        let request = Request::Start { program: program.to_owned(), uid, gid, group };
        match self.client.call(&request, &[input, output])? {
            (Response::Started { number, pid }, mut exit) => {
                let exit = exit.pop().ok_or_else(unexpected)?;
                Ok(Child::new(self.client.clone(), number, pid, exit))
            }
            _ => Err(unexpected()),
        }
    }

    /// Opens a granted file with the rights of root.
    ///
    /// # Errors
    /// The file was not granted, or `open(2)` fails.
    pub fn read(&self, path: &Path) -> io::Result<File> {
        self.open(&Request::Read(path.to_owned()))
    }

    /// Opens a granted log with the rights of root.
    ///
    /// # Errors
    /// As [`Spawner::read`], and [`crate::open_log`].
    pub fn append(&self, path: &Path) -> io::Result<File> {
        self.open(&Request::Append(path.to_owned()))
    }

    /// Removes a file that was granted as a leftover, when the server ends.
    ///
    /// # Errors
    /// The file was not granted, or `unlink(2)` fails.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.client.last_call(&Request::Remove(path.to_owned())).map(drop)
    }

    fn open(&self, request: &Request) -> io::Result<File> {
        match self.client.call(request, &[])? {
            (Response::Opened, mut opened) => opened.pop().map(File::from).ok_or_else(unexpected),
            _ => Err(unexpected()),
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the spawner sent an unexpected response")
}

#[cfg(test)]
mod tests;
