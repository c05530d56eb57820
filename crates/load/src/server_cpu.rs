//! [`ServerCpu`]: what the server's processes have spent, by the kernel's accounts.
//!
//! Read before and after a run by the thread that collects. From a control group (cgroups(7),
//! `cpu.stat`) the time is exact and holds processes that have ended; from process trees (proc(5),
//! `stat`) it is exact to 10 ms a process, children that have ended and were waited for included.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// Kernel clock ticks per second in `/proc/PID/stat` (USER_HZ, proc(5)): 100 on every Linux
/// architecture that Rust builds for.
const US_PER_TICK: u64 = 1_000_000 / 100;

/// The processes that count as the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Processes {
    /// These and all their descendants.
    Trees(Vec<u32>),
    /// All members, past and present, of a control group, by its folder below `/sys/fs/cgroup`.
    Cgroup(PathBuf),
}

/// CPU time of the server over a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCpu {
    /// User and system time in µs.
    pub total_us: u64,
    /// The same by the name of the program, where processes are known one by one.
    pub by_program: Vec<(String, u64)>,
}

impl ServerCpu {
    /// Adds the time of another run.
    pub fn merge(&mut self, other: &Self) {
        self.total_us += other.total_us;
        for (name, us) in &other.by_program {
            match self.by_program.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += us,
                None => self.by_program.push((name.clone(), *us)),
            }
        }
    }
}

/// The accounts at one moment.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    total_us: u64,
    by_program: BTreeMap<String, u64>,
}

impl Accounts {
    /// Reads them; the error names what is not there.
    pub(crate) fn read(processes: &Processes) -> Result<Self, String> {
        match processes {
            Processes::Cgroup(folder) => Self::of_cgroup(folder),
            Processes::Trees(roots) => Self::of_trees(roots),
        }
    }

    fn of_cgroup(folder: &Path) -> Result<Self, String> {
        let path = folder.join("cpu.stat");
        let stat =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let total_us = usage.and_then(|usage| usage.trim().parse().ok());
        let total_us = total_us.ok_or_else(|| format!("{}: no usage_usec", path.display()))?;
        Ok(Self { total_us, by_program: BTreeMap::new() })
    }

    fn of_trees(roots: &[u32]) -> Result<Self, String> {
        let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
        let processes: HashMap<u32, Process> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, Process::read(pid)?)))
            .collect();
        let mut accounts = Self::default();
        let mut open = roots.to_vec();
        let mut seen = Vec::new();
        while let Some(pid) = open.pop() {
            let Some(process) = processes.get(&pid) else {
                return Err(format!("there is no process {pid}"));
            };
            if seen.contains(&pid) {
                continue;
            }
            seen.push(pid);
            accounts.total_us += process.cpu_us;
            *accounts.by_program.entry(process.name.clone()).or_default() += process.cpu_us;
            open.extend(processes.iter().filter(|(_, p)| p.parent == pid).map(|(&pid, _)| pid));
        }
        Ok(accounts)
    }

    /// What was spent from these to `later` ones.
    pub(crate) fn until(&self, later: &Self) -> ServerCpu {
        let spent = later.by_program.iter().map(|(name, us)| {
            let before = self.by_program.get(name).copied().unwrap_or_default();
            (name.clone(), us.saturating_sub(before))
        });
        ServerCpu {
            total_us: later.total_us.saturating_sub(self.total_us),
            by_program: spent.filter(|(_, us)| *us > 0).collect(),
        }
    }
}

struct Process {
    name: String,
    parent: u32,
    cpu_us: u64,
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name may hold spaces and parentheses, so fields are counted from the last `)`.
    fn parse(stat: &str) -> Option<Self> {
        let (open, close) = (stat.find('(')?, stat.rfind(')')?);
        let fields: Vec<&str> = stat.get(close + 1..)?.split_whitespace().collect();
        // proc(5) counts from 1 with the pid; `fields[0]` is its field 3.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks = number(14)? + number(15)? + number(16)? + number(17)?;
        Some(Self {
            name: stat.get(open + 1..close)?.to_owned(),
            parent: number(4)? as u32,
            cpu_us: ticks * US_PER_TICK,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 900 1 1";
        let process = Process::parse(line).expect("the line is complete");
        assert_eq!((process.name.as_str(), process.parent), ("a) b (c", 7));
        assert_eq!(process.cpu_us, 1_000_000);
        assert!(Process::parse("42 (php) S 7").is_none());
    }

    #[test]
    fn what_was_spent_is_the_difference_by_program() {
        let accounts = |total_us, nginx| Accounts {
            total_us,
            by_program: BTreeMap::from([("nginx".to_owned(), nginx), ("idle".to_owned(), 5)]),
        };
        let spent = accounts(100, 40).until(&accounts(300, 140));
        assert_eq!(spent, ServerCpu { total_us: 200, by_program: vec![("nginx".into(), 100)] });
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let error = Accounts::read(&Processes::Trees(vec![u32::MAX])).expect_err("no such process");
        assert!(error.contains("no process"), "{error}");
        assert!(Accounts::read(&Processes::Trees(vec![std::process::id()])).is_ok());
    }
}
