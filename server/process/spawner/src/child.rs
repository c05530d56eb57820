//! [`Child`]: a process that the spawner has started for the gateway.

use crate::client::Client;
use crate::message::{Request, Response};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Identified by the spawner's number. Killed on drop. Nothing but [`Child::exit_status`] waits for the spawner.
#[derive(Debug)]
pub struct Child {
    client: Arc<Client>,
    number: u64,
    pid: u32,
    /// Readable once the process has exited (pidfd_open(2)).
    exit: OwnedFd,
}

impl Child {
    pub(crate) fn new(client: Arc<Client>, number: u64, pid: u32, exit: OwnedFd) -> Self {
        Self { client, number, pid, exit }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// Has `SIGKILL` sent. If the spawner has exited, so has the child.
    pub fn kill(&self) {
        self.client.notify(Request::Kill(self.number));
    }

    /// Whether the process has exited.
    pub fn has_exited(&self) -> bool {
        self.client.send_pending();
        let mut exit = [PollFd::new(&self.exit, PollFlags::IN)];
        poll(&mut exit, Some(&NO_WAIT)).is_ok_and(|count| count > 0)
    }

    /// How the process has exited. Waits for the spawner, and for those that wait for it already.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        match self.client.call(&Request::Status(self.number), &[]) {
            Ok((Response::Exited(status), _)) => status.map(ExitStatus::from_raw),
            _ => None,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.client.notify(Request::Forget(self.number));
    }
}
