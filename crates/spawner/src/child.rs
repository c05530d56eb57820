//! [`Child`]: a process that the spawner has started for the gateway.

use crate::client::Client;
use crate::message::{Request, Response};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

/// Identified by the spawner's number. Killed on drop.
#[derive(Debug)]
pub struct Child {
    client: Arc<Client>,
    number: u64,
    pid: u32,
}

impl Child {
    pub(crate) fn new(client: Arc<Client>, number: u64, pid: u32) -> Self {
        Self { client, number, pid }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// Sends `SIGKILL`.
    ///
    /// # Errors
    /// The spawner has exited, and the child with it.
    pub fn kill(&self) -> io::Result<()> {
        self.client.call(&Request::Kill(self.number), &[]).map(drop)
    }

    /// The exit status, once the process has exited.
    pub fn try_wait(&self) -> Option<ExitStatus> {
        match self.client.call(&Request::Status(self.number), &[]) {
            Ok((Response::Ended(status), _)) => status.map(ExitStatus::from_raw),
            _ => None,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // If the spawner has exited, so has the child.
        let _ = self.client.call(&Request::Forget(self.number), &[]);
    }
}
