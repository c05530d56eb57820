//! A process that the test did not start itself, such as a worker of the server under test.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long a process may take to end before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running process; its id cannot come to mean another one (pidfd_open(2)).
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    descriptor: OwnedFd,
}

impl Process {
    /// The process with this id, which must be running.
    #[track_caller]
    pub fn of(pid: u32) -> Process {
        Process::find(pid).unwrap_or_else(|| panic!("no process {pid} is running"))
    }

    /// The process with this id, if it is still running.
    pub fn find(pid: u32) -> Option<Process> {
        let pid = Pid::from_raw(pid as i32)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Process { pid, descriptor })
    }

    /// Kills it: no handler of its own runs.
    pub fn kill(&self) {
        // It may have ended by itself.
        let _ = kill_process(self.pid, Signal::KILL);
    }

    /// Waits until it has ended.
    #[track_caller]
    pub fn wait_until_gone(&self) {
        assert!(self.is_gone_within(PATIENCE), "process {:?} does not end", self.pid);
    }

    /// Waits until it has ended; false if it still runs after this time.
    pub fn is_gone_within(&self, time: Duration) -> bool {
        let time = Timespec::try_from(time).expect("it is less than an age");
        poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], Some(&time)) == Ok(1)
    }
}
