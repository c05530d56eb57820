//! The janitor: a second process that ends what the lab started, however the lab ends.
//!
//! The lab writes a line per process, control group and directory to a pipe. When the pipe closes
//! (a normal end, Ctrl-C, a panic, `kill -9`), the janitor ends the processes by id, removes the
//! rest and exits. It has its own process group, so the terminal's Ctrl-C does not reach it.
//! Invariant: a line is written as soon as the thing exists.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid as RustixPid, Signal, kill_process};

use crate::cgroup;
use crate::error::{Result, ResultExt};
use outboard_profile::process_table::{Pid, Process, ProcessTable};

/// The command of this binary that is the janitor.
pub const COMMAND: &str = "janitor";

/// How long a process may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(8);

/// The lab's end of the pipe.
pub struct Janitor {
    pipe: Option<ChildStdin>,
    child: Child,
}

impl Janitor {
    /// Starts this binary as the janitor.
    pub fn start() -> Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .context(|| "start the janitor process".into())?;
        let pipe = child.stdin.take();
        Ok(Self { pipe, child })
    }

    /// Registers a process that the lab has started.
    pub fn register_process(&mut self, pid: Pid) -> Result<()> {
        let started = Process::read(pid).map_or(0, |process| process.started_ticks);
        self.register(&format!("process {pid} {started}"))
    }

    /// Registers a control group.
    pub fn register_cgroup(&mut self, directory: &Path) -> Result<()> {
        self.register(&format!("cgroup {}", directory.display()))
    }

    /// Registers a directory, which is removed with its content.
    pub fn register_directory(&mut self, directory: &Path) -> Result<()> {
        self.register(&format!("directory {}", directory.display()))
    }

    fn register(&mut self, line: &str) -> Result<()> {
        let pipe = self.pipe.as_mut().expect("taken only in drop");
        writeln!(pipe, "{line}").context(|| "write to the janitor".into())
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

/// The things that the janitor has to remove.
#[derive(Default)]
struct Registered {
    processes: Vec<(Pid, u64)>,
    cgroups: Vec<PathBuf>,
    directories: Vec<PathBuf>,
}

/// The janitor's main function: reads lines until the lab has ended, then cleans up.
pub fn run(lines: impl BufRead) {
    let mut registered = Registered::default();
    for line in lines.lines().map_while(std::result::Result::ok) {
        registered.take(&line);
    }
    let same = |&&(pid, started): &&(Pid, u64)| {
        Process::read(pid).is_some_and(|process| process.started_ticks == started)
    };
    let roots: Vec<Pid> = registered.processes.iter().filter(same).map(|&(pid, _)| pid).collect();
    end(&roots, &registered.cgroups, || {});
    registered.cgroups.iter().for_each(|directory| cgroup::remove(directory));
    for directory in &registered.directories {
        if let Err(error) = std::fs::remove_dir_all(directory) {
            eprintln!("cannot remove {}: {error}", directory.display());
        }
    }
}

impl Registered {
    fn take(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("process", rest)) => {
                let (pid, started) = rest.split_once(' ').unwrap_or((rest, "0"));
                if let (Ok(pid), Ok(started)) = (pid.parse(), started.parse()) {
                    self.processes.push((pid, started));
                }
            }
            Some(("cgroup", path)) => self.cgroups.push(path.into()),
            Some(("directory", path)) => self.directories.push(path.into()),
            _ => {}
        }
    }
}

/// Ends processes by id: SIGTERM to the roots, and SIGKILL to the rest of their trees and groups
/// after a grace period. `reap` is called while waiting, for a parent to collect them.
pub fn end(roots: &[Pid], cgroups: &[PathBuf], mut reap: impl FnMut()) {
    let table = ProcessTable::snapshot();
    let mut alive: Vec<Pid> = table.tree(roots.iter().copied()).into_iter().collect();
    alive.extend(cgroups.iter().flat_map(|directory| cgroup::members(directory)));
    roots.iter().for_each(|&pid| signal(pid, Signal::TERM));
    let deadline = Instant::now() + GRACE;
    while wait_for_end(&mut alive, &mut reap) && Instant::now() < deadline {}
    alive.extend(cgroups.iter().flat_map(|directory| cgroup::members(directory)));
    alive.iter().for_each(|&pid| signal(pid, Signal::KILL));
    let deadline = Instant::now() + GRACE;
    while wait_for_end(&mut alive, &mut reap) && Instant::now() < deadline {}
}

/// Removes ended processes from the list and pauses; false when none is left.
fn wait_for_end(alive: &mut Vec<Pid>, reap: &mut impl FnMut()) -> bool {
    reap();
    alive.retain(|&pid| Process::read(pid).is_some_and(|process| !process.zombie));
    if !alive.is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    !alive.is_empty()
}

/// Sends a signal; a process that is already gone needs none.
pub fn signal(pid: Pid, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(RustixPid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
