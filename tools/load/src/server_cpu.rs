//! [`ServerCpu`]: the CPU time that the server's processes spend, by the kernel's accounts.
//!
//! Read before and after a run by the thread that collects. The time of a control group
//! (cgroups(7), `cpu.stat`) is exact and includes processes that have ended. The time of process
//! trees is exact to 10 ms a process and includes children that have ended and were waited for.

use outboard_profile::process_table::{Pid, ProcessTable, cgroup_cpu_us};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The processes that count as the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Processes {
    /// These and all their descendants.
    Trees(Vec<Pid>),
    /// All members, past and present, of a control group, by its directory below `/sys/fs/cgroup`.
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

/// The CPU time so far.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    total_us: u64,
    by_program: BTreeMap<String, u64>,
}

impl Accounts {
    /// Reads it; the error names what is missing.
    pub(crate) fn read(processes: &Processes) -> Result<Self, String> {
        match processes {
            Processes::Cgroup(directory) => Self::of_cgroup(directory),
            Processes::Trees(roots) => Self::of_trees(roots),
        }
    }

    fn of_cgroup(directory: &Path) -> Result<Self, String> {
        let total_us = cgroup_cpu_us(directory);
        let total_us = total_us.ok_or_else(|| format!("{}: no cpu.stat", directory.display()))?;
        Ok(Self { total_us, by_program: BTreeMap::new() })
    }

    fn of_trees(roots: &[Pid]) -> Result<Self, String> {
        let table = ProcessTable::snapshot();
        if let Some(pid) = roots.iter().find(|&&pid| table.get(pid).is_none()) {
            return Err(format!("there is no process {pid}"));
        }
        let mut accounts = Self::default();
        for process in table.tree(roots.iter().copied()).iter().filter_map(|&pid| table.get(pid)) {
            accounts.total_us += process.cpu_us;
            *accounts.by_program.entry(process.name.clone()).or_default() += process.cpu_us;
        }
        Ok(accounts)
    }

    /// The CPU time from here to `later`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_cpu_is_the_difference_by_program() {
        let accounts = |total_us, nginx| Accounts {
            total_us,
            by_program: BTreeMap::from([("nginx".to_owned(), nginx), ("idle".to_owned(), 5)]),
        };
        let spent = accounts(100, 40).until(&accounts(300, 140));
        assert_eq!(spent, ServerCpu { total_us: 200, by_program: vec![("nginx".into(), 100)] });
    }

    #[test]
    fn a_missing_process_is_an_error() {
        let error = Accounts::read(&Processes::Trees(vec![u32::MAX])).expect_err("no such process");
        assert!(error.contains("no process"), "{error}");
        assert!(Accounts::read(&Processes::Trees(vec![std::process::id()])).is_ok());
    }
}
