//! Siblings: zygotes that this one has forked, each with a control socket, an output and workers of its
//! own. All share the started engine: opcache's and APCu's memory, and the booted script.
//!
//! Called for orders, and when a child was reaped. Invariants: a sibling has nothing of the zygote but
//! the engine; it dies with the zygote, and no process of its session outlives it; it runs no exit
//! handler, because those are the zygote's.

use super::{Zygote, fork_process};
use crate::child_exits::ChildExits;
use crate::worker_memories::WorkerMemories;
use crate::{descendants, exit, process};
use outboard_ring::control::Event;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

/// The process ids of siblings, by number.
#[derive(Debug, Default)]
pub(super) struct Siblings(BTreeMap<u64, i32>);

impl Siblings {
    /// Removes the sibling with this process id, and returns its number.
    fn remove(&mut self, pid: i32) -> Option<u64> {
        let number = self.0.iter().find(|(_, sibling)| **sibling == pid).map(|(number, _)| *number);
        number.inspect(|number| {
            self.0.remove(number);
        })
    }

    pub(super) fn has(&self, pid: i32) -> bool {
        self.0.values().any(|sibling| *sibling == pid)
    }

    /// A pid is not reused before the zygote has reaped the sibling.
    pub(super) fn kill(&self, number: u64) {
        if let Some(pid) = self.0.get(&number) {
            // SAFETY: a plain system call for a child of this process.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
    }
}

impl Zygote {
    /// Forks a sibling. Returns in both: the sibling goes on with orders of its own.
    pub(super) fn split(&mut self, sibling: u64, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let descriptors = match self.check_split(descriptors) {
            Ok(descriptors) => descriptors,
            Err(message) => {
                let message = message.to_owned();
                return self.report(&Event::SplitFailed { sibling, message });
            }
        };
        let zygote = std::process::id();
        let event = match fork_process() {
            Err(error) => Event::SplitFailed { sibling, message: error.to_string() },
            Ok(None) => return self.become_sibling(zygote, sibling, descriptors),
            Ok(Some(pid)) => {
                self.siblings.0.insert(sibling, pid);
                Event::Split { sibling, pid }
            }
        };
        self.report(&event)
    }

    fn check_split(&self, descriptors: Vec<OwnedFd>) -> Result<[OwnedFd; 2], &'static str> {
        if self.is_program() {
            return Err("the processes of a program that starts a server have one zygote");
        }
        let count = "the order to split came without its two descriptors";
        <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| count)
    }

    /// In the child of `zygote`: replaces everything but the engine, the settings and the affinity.
    fn become_sibling(
        &mut self,
        zygote: u32,
        number: u64,
        descriptors: [OwnedFd; 2],
    ) -> io::Result<()> {
        if !process::die_with(zygote) {
            exit::leave(1);
        }
        self.is_sibling = true;
        process::leave_terminal();
        descendants::adopt();
        self.workers.clear();
        self.memories = WorkerMemories::new()?;
        self.siblings = Siblings::default();
        self.of_boot = Some(Vec::new());
        let [control, output] = descriptors;
        self.control = control;
        self.exits = ChildExits::watch()?;
        rustix::stdio::dup2_stdout(&output)?;
        rustix::stdio::dup2_stderr(&output)?;
        drop(output);
        let title = format!("outboard: {} zygote {number}", self.settings.app);
        process::set_title(&title, process::ZYGOTE_NAME);
        self.report_start()
    }

    /// Reports the exit of a reaped child if it was a sibling; false if it was not. The orphans of a
    /// sibling are children of this process by then (`exit_notify` in the kernel's exit.c).
    pub(super) fn sibling_exited(
        &mut self,
        pid: i32,
        code: Option<i32>,
        signal: Option<i32>,
    ) -> io::Result<bool> {
        let Some(sibling) = self.siblings.remove(pid) else { return Ok(false) };
        descendants::end_session(pid);
        self.report(&Event::SiblingExited { sibling, code, signal })?;
        Ok(true)
    }
}

/// Ends the process of a sibling.
pub(super) fn leave(result: io::Result<()>) -> ! {
    match result {
        Ok(()) => exit::leave(0),
        Err(error) => {
            eprintln!("outboard-php: a zygote exits: {error}");
            exit::leave(1)
        }
    }
}
