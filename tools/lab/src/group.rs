//! The processes of one stack: started, measured and ended together.
//!
//! Owned by a [`crate::stack::Stack`] or the database. CPU time comes from a control group if the
//! machine allows one, otherwise from the process tree with its reaped children. Invariant: every
//! process started here is registered with the janitor before anything waits for it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use outboard_load::Processes;

use crate::cgroup::{self, Cgroup};
use crate::error::{Error, Result, ResultExt};
use crate::janitor;
use crate::lab::Lab;
use crate::system;
use outboard_profile::process_table::{self, Pid, Process, ProcessTable};

/// Timeout until a group accepts connections.
const START: Duration = Duration::from_secs(30);

/// The number of processes of the same name whose memory is read.
const READ_ALIKE: usize = 64;

/// A set of root processes and all their descendants.
pub struct Group {
    name: String,
    cgroup: Option<Cgroup>,
    roots: Vec<Child>,
    found: Vec<Pid>,
    log: PathBuf,
}

impl Group {
    /// An empty group whose processes log to the lab's scratch directory.
    pub fn new(lab: &mut Lab, name: &str) -> Result<Self> {
        let name = &format!("{name}{}", lab.variant);
        let cgroup = Cgroup::make(name);
        if let Some(cgroup) = &cgroup {
            lab.janitor.register_cgroup(cgroup.directory())?;
        }
        let log = lab.scratch.join(format!("{name}.log"));
        Ok(Self { name: name.into(), cgroup, roots: Vec::new(), found: Vec::new(), log })
    }

    /// Processes that already run, with their descendants; they continue when the lab has ended.
    pub fn attached(lab: &Lab, name: &str, found: Vec<Pid>) -> Self {
        let log = lab.scratch.join(format!("{name}.log"));
        Self { name: name.into(), cgroup: None, roots: Vec::new(), found, log }
    }

    /// Starts one more root process. Its output goes to the group's log.
    pub fn start(&mut self, lab: &mut Lab, program: &Command) -> Result<()> {
        let log = || OpenOptions::new().create(true).append(true).open(&self.log);
        let context = || format!("open {}", self.log.display());
        let counted = lab.callgrind.as_ref().map(|callgrind| callgrind.wrap(program));
        let mut command = self.enter_cgroup(counted.as_ref().unwrap_or(program));
        command.stdin(Stdio::null()).process_group(0);
        command.stdout(log().context(context)?).stderr(log().context(context)?);
        let child = command.spawn().context(|| format!("start {:?}", program.get_program()))?;
        lab.janitor.register_process(child.id())?;
        self.roots.push(child);
        Ok(())
    }

    /// A shell moves itself into the group and executes the program, so no code of ours runs
    /// between fork and exec.
    fn enter_cgroup(&self, program: &Command) -> Command {
        let Some(cgroup) = &self.cgroup else { return system::started_by(&[], program) };
        let enter = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
        let directory = cgroup.directory().as_os_str();
        system::started_by(&["/bin/sh".as_ref(), "-c".as_ref(), enter.as_ref(), directory], program)
    }

    /// All living processes of the group.
    pub fn pids(&self) -> Vec<Pid> {
        match &self.cgroup {
            Some(cgroup) => cgroup::members(cgroup.directory()),
            None => {
                let table = ProcessTable::snapshot();
                let roots = self.roots.iter().map(Child::id).chain(self.found.iter().copied());
                table.tree(roots).into_iter().collect()
            }
        }
    }

    /// The processes for the load generator's CPU accounting; `None` if they are unknown.
    pub fn processes(&self) -> Option<Processes> {
        if let Some(cgroup) = &self.cgroup {
            return Some(Processes::Cgroup(cgroup.directory().to_owned()));
        }
        let roots: Vec<Pid> =
            self.roots.iter().map(Child::id).chain(self.found.iter().copied()).collect();
        (!roots.is_empty()).then_some(Processes::Trees(roots))
    }

    /// User and system time of the group since its start, in µs.
    pub fn cpu_us(&self) -> u64 {
        if let Some(us) = self.cgroup.as_ref().and_then(Cgroup::cpu_us) {
            return us;
        }
        self.pids().into_iter().filter_map(Process::read).map(|process| process.cpu_us).sum()
    }

    /// The same for living processes, summed by command name. A process that has ended is counted
    /// with the parent that reaped it.
    pub fn cpu_us_by_name(&self) -> BTreeMap<String, u64> {
        let mut by_name = BTreeMap::new();
        for process in self.pids().into_iter().filter_map(Process::read) {
            *by_name.entry(process.name).or_default() += process.cpu_us;
        }
        by_name
    }

    /// Proportional memory of all its processes, in bytes. Of many with the same name, only some
    /// are read and extrapolated, since the kernel needs a millisecond or more for each.
    pub fn pss_bytes(&self) -> u64 {
        let mut by_name = BTreeMap::<String, Vec<Pid>>::new();
        for process in self.pids().into_iter().filter_map(Process::read) {
            by_name.entry(process.name).or_default().push(process.pid);
        }
        by_name.values().map(|pids| pss_of_alike(pids)).sum()
    }

    /// Waits until `ready` returns true; fails when a root process ends before, or at the timeout.
    pub fn await_start(&mut self, ready: impl Fn() -> bool) -> Result<()> {
        let deadline = Instant::now() + START;
        while !ready() {
            let ended = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)));
            if self.roots.iter_mut().any(ended) || Instant::now() > deadline {
                let log = log_end(&self.log, 20);
                return Err(Error::NotAnswering { stack: self.name.clone(), log });
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn pss_of_alike(pids: &[Pid]) -> u64 {
    let read = pids.iter().step_by(pids.len().div_ceil(READ_ALIKE));
    let sum: u64 = read.clone().map(|&pid| process_table::pss_bytes(pid)).sum();
    sum * pids.len() as u64 / read.len() as u64
}

impl Drop for Group {
    fn drop(&mut self) {
        let pids: Vec<Pid> = self.roots.iter().map(Child::id).collect();
        let cgroups: Vec<PathBuf> =
            self.cgroup.iter().map(|cgroup| cgroup.directory().to_owned()).collect();
        janitor::end(&pids, &cgroups, || {
            for child in &mut self.roots {
                let _ = child.try_wait();
            }
        });
        cgroups.iter().for_each(|directory| cgroup::remove(directory));
    }
}

/// The last lines of a log file.
fn log_end(log: &Path, lines: usize) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
