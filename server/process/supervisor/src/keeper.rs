//! [`Keeper`]: the host that runs a program of an app, as the gateway sees it.
//!
//! Called for each instance of a process. Invariants: a dropped keeper leaves neither an orphan nor a zombie; the keeper
//! has ended only when nothing of its program is left.

use crate::memory::Resident;
use crate::zygote::{AsUser, Received, SpawnError, Zygote};
use outboard_ring::control::{Command, Event, HostSettings, Order};
use rustix::net::{Shutdown, shutdown};
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// The number of the program in orders and events.
const PROGRAM: u64 = 0;

/// More processes of one program are not counted.
const MOST_COUNTED: usize = 20_000;

/// See the module.
#[derive(Debug)]
pub struct Keeper(Zygote);

/// What has happened to the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperEvent {
    /// It runs.
    Started {
        /// Its process id.
        pid: i32,
    },
    /// It cannot be started.
    Failed {
        /// Why.
        message: String,
    },
    /// It has ended, and what it has started.
    Ended {
        /// The exit code, if it has exited by itself.
        code: Option<i32>,
        /// The signal that has ended it.
        signal: Option<i32>,
    },
    /// The keeper ends.
    Closed,
}

/// What a program takes, with everything that it has started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Family {
    /// Resident memory that its processes share with no file and no shared memory.
    pub memory_bytes: u64,
    /// Processes.
    pub processes: usize,
}

impl Keeper {
    /// Starts the host and orders it to run the program; [`KeeperEvent::Started`] or another one follows. The second
    /// value is the non-blocking read end of what the program prints. Waits for the spawner, if that starts it.
    ///
    /// # Errors
    /// [`SpawnError`]: what failed, and what to do about it.
    pub fn spawn(
        user: Option<&AsUser>,
        host_binary: &Path,
        settings: HostSettings,
        command: Command,
    ) -> Result<(Self, OwnedFd), SpawnError> {
        let order = Order::Run { settings: Box::new(settings), command };
        let (host, output) = Zygote::spawn_by(user, host_binary, &order)?;
        Ok((Self(host), output))
    }

    /// The non-blocking control socket, for epoll.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.0.control_fd()
    }

    /// The next event; `None`: nothing more for now.
    pub fn receive(&self) -> Option<KeeperEvent> {
        match self.0.receive() {
            Ok(Received::Nothing) => None,
            Ok(Received::Event(Event::Forked { pid, .. })) => Some(KeeperEvent::Started { pid }),
            Ok(Received::Event(Event::ForkFailed { message, .. })) => {
                Some(KeeperEvent::Failed { message })
            }
            Ok(Received::Event(Event::Exited { code, signal, .. })) => {
                Some(KeeperEvent::Ended { code, signal })
            }
            Ok(Received::Closed | Received::Event(_)) | Err(_) => Some(KeeperEvent::Closed),
        }
    }

    /// Sends a signal to the program.
    ///
    /// # Errors
    /// The keeper has ended, or takes no orders.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.0.signal(PROGRAM, signal)
    }

    /// Has the keeper kill everything, and end.
    pub fn end(&self) {
        // It fails if the keeper has ended.
        let _ = shutdown(self.0.control_fd(), Shutdown::Both);
    }

    /// Whether the keeper has ended; never waits.
    pub fn has_ended(&mut self) -> bool {
        self.0.has_exited()
    }

    /// The keeper's process id.
    pub fn pid(&self) -> Option<u32> {
        self.0.pid()
    }
}

impl Family {
    /// What is below a keeper now. Reads `/proc`, so not on an event loop.
    pub fn below(keeper: u32) -> Self {
        // The keeper is two processes.
        let mut found: Vec<u32> = children(keeper).into_iter().flat_map(children).collect();
        let mut next = 0;
        while let Some(pid) = found.get(next).filter(|_| next < MOST_COUNTED) {
            found.extend(children(*pid));
            next += 1;
        }
        let own_bytes = |pid: &u32| Some(Resident::read(pid.cast_signed())?.own_bytes());
        Self { memory_bytes: found.iter().filter_map(own_bytes).sum(), processes: found.len() }
    }
}

/// The children of all threads of a process (proc_tid_children(5)).
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
    let listed = listed.flat_map(|listed| {
        let listed = listed.unwrap_or_default();
        listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command as Program, Stdio, id};

    #[test]
    fn a_family_has_what_is_below_the_two_processes_of_a_keeper() {
        // The first shell stands for the inner process of a keeper, which is this test.
        let script = "sh -c 'sleep 60 & sleep 60 & echo; wait' & wait";
        let mut shell = Program::new("sh");
        let mut inner = shell.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let printed = inner.stdout.take().unwrap();
        io::Read::read_exact(&mut { printed }, &mut [0]).unwrap();
        assert!(children(id()).contains(&inner.id()));
        let family = Family::below(id());
        assert!(family.processes >= 3 && family.memory_bytes > 0, "{family:?}");
        for pid in
            children(inner.id()).into_iter().flat_map(|pid| [children(pid), vec![pid]].concat())
        {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        inner.wait().unwrap();
        assert_eq!(Family::below(u32::MAX), Family::default());
    }
}
