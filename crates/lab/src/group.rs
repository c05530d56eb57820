//! The processes of one stack: started together, measured together, ended together.
//!
//! Owned by a [`crate::stack::Stack`] or the database. CPU comes from a control group when the
//! machine lets us make one, else from the process tree with its reaped children. Invariant:
//! every process started here is known to the janitor before anybody waits for its answer.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use outboard_load::Processes;

use crate::cgroup::{self, Cgroup};
use crate::error::{Doing, Error, Result};
use crate::janitor;
use crate::lab::Lab;
use crate::process_table::{self, Pid, Process, ProcessTable};

/// How long a group may take until it accepts connections.
const START: Duration = Duration::from_secs(30);

/// Processes with the same name whose memory is read at most.
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
    /// An empty group whose processes log into the lab's scratch folder.
    pub fn new(lab: &mut Lab, name: &str) -> Result<Self> {
        let name = &format!("{name}{}", lab.side);
        let cgroup = Cgroup::make(name);
        if let Some(cgroup) = &cgroup {
            lab.janitor.mind_cgroup(cgroup.directory())?;
        }
        let log = lab.scratch.join(format!("{name}.log"));
        Ok(Self { name: name.into(), cgroup, roots: Vec::new(), found: Vec::new(), log })
    }

    /// Processes that run already, with all below them; they go on when the lab has ended.
    pub fn attached(lab: &Lab, name: &str, found: Vec<Pid>) -> Self {
        let log = lab.scratch.join(format!("{name}.log"));
        Self { name: name.into(), cgroup: None, roots: Vec::new(), found, log }
    }

    /// Starts one more root process. Its output goes to the group's log.
    pub fn start(&mut self, lab: &mut Lab, program: &Command) -> Result<()> {
        let log = || OpenOptions::new().create(true).append(true).open(&self.log);
        let doing = || format!("open {}", self.log.display());
        let mut command = self.enter_cgroup(program);
        command.stdin(Stdio::null()).process_group(0);
        command.stdout(log().doing(doing)?).stderr(log().doing(doing)?);
        let child = command.spawn().doing(|| format!("start {:?}", program.get_program()))?;
        lab.janitor.mind_process(child.id())?;
        self.roots.push(child);
        Ok(())
    }

    /// A shell moves itself into the group and becomes the program: no code of ours has to
    /// run between fork and exec.
    fn enter_cgroup(&self, program: &Command) -> Command {
        let mut command = match &self.cgroup {
            Some(cgroup) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]);
                shell.arg(cgroup.directory()).arg(program.get_program());
                shell
            }
            None => Command::new(program.get_program()),
        };
        command.args(program.get_args());
        for (key, value) in program.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command
    }

    /// All processes alive in the group.
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

    /// How a load generator finds their CPU time; `None` where they are not known.
    pub fn processes(&self) -> Option<Processes> {
        if let Some(cgroup) = &self.cgroup {
            return Some(Processes::Cgroup(cgroup.directory().to_owned()));
        }
        let roots: Vec<Pid> =
            self.roots.iter().map(Child::id).chain(self.found.iter().copied()).collect();
        (!roots.is_empty()).then_some(Processes::Trees(roots))
    }

    /// User and system time spent by the group since it exists, in µs.
    pub fn cpu_us(&self) -> u64 {
        if let Some(us) = self.cgroup.as_ref().and_then(Cgroup::cpu_us) {
            return us;
        }
        self.pids().into_iter().filter_map(Process::read).map(|process| process.cpu_us).sum()
    }

    /// The same of the processes alive, summed by command name. A process that has ended is
    /// counted with the parent that reaped it.
    pub fn cpu_us_by_name(&self) -> BTreeMap<String, u64> {
        let mut by_name = BTreeMap::new();
        for process in self.pids().into_iter().filter_map(Process::read) {
            *by_name.entry(process.name).or_default() += process.cpu_us;
        }
        by_name
    }

    /// Proportional memory of all its processes, in bytes. Of many with the same name, a part is
    /// read for all: the kernel needs a millisecond and more for each.
    pub fn pss_bytes(&self) -> u64 {
        let mut by_name = BTreeMap::<String, Vec<Pid>>::new();
        for process in self.pids().into_iter().filter_map(Process::read) {
            by_name.entry(process.name).or_default().push(process.pid);
        }
        by_name.values().map(|pids| pss_of_alike(pids)).sum()
    }

    /// Waits until `ready` says so; an error when a root process ends before, or takes too long.
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
