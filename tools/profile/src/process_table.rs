//! Processes as `/proc` shows them: parents, start times, CPU time, proportional memory (proc(5)).
//!
//! Used for the CPU time of the server, for profiles, and by the lab. A process that ends between two
//! reads is missing in the snapshot.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// A process id as `/proc` spells it.
pub type Pid = u32;

/// Kernel clock ticks per second in `/proc/PID/stat` (USER_HZ, proc(5)): 100 on every Linux
/// architecture that Rust builds for.
const TICKS_PER_SECOND: u64 = 100;

/// One line of `/proc/PID/stat`, as far as it is needed (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: Pid,
    /// The command name, at most 15 bytes.
    pub name: String,
    /// It has ended, and its parent has not waited for it yet.
    pub zombie: bool,
    /// Parent process id.
    pub parent: Pid,
    /// User and system time in µs, including that of reaped children.
    pub cpu_us: u64,
    /// The part of reaped children.
    pub ended_children_us: u64,
    /// Start time in ticks since boot: together with the pid this identifies a process.
    pub started_ticks: u64,
}

impl Process {
    /// Reads one process; `None` when it is gone.
    pub fn read(pid: Pid) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name may hold spaces and parentheses, so fields are counted from the last `)`.
    fn parse(stat: &str) -> Option<Self> {
        let (open, close) = (stat.find('(')?, stat.rfind(')')?);
        let pid = stat[..open].trim().parse().ok()?;
        let name = stat.get(open + 1..close)?.to_owned();
        let fields: Vec<&str> = stat.get(close + 1..)?.split_whitespace().collect();
        // proc(5) counts from 1 with the pid; `fields[0]` is its field 3.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let us = |ticks: u64| ticks * (1_000_000 / TICKS_PER_SECOND);
        let (own, ended) = (number(14)? + number(15)?, number(16)? + number(17)?);
        Some(Self {
            pid,
            name,
            zombie: matches!(fields.first(), Some(&"Z" | &"X")),
            parent: number(4)? as Pid,
            cpu_us: us(own + ended),
            ended_children_us: us(ended),
            started_ticks: number(22)?,
        })
    }
}

/// CPU time of this process's reaped children in µs, exact to 10 ms.
pub fn ended_children_us() -> u64 {
    Process::read(std::process::id()).map_or(0, |own| own.ended_children_us)
}

/// CPU time of the living threads of a process in µs, exact to the µs (`schedstat`, Linux's
/// Documentation/scheduler/sched-stats.rst).
pub fn threads_us(pid: Pid) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let spent_ns = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    spent_ns.sum::<u64>() / 1_000
}

/// The kind of process with this name: numbered workers are one kind.
pub fn kind_of(name: &str) -> String {
    match name.split_once('/') {
        Some((app, number)) if number.parse::<u32>().is_ok() => format!("{app} worker"),
        _ => name.to_owned(),
    }
}

/// A snapshot of all processes.
pub struct ProcessTable(HashMap<Pid, Process>);

impl ProcessTable {
    /// Takes a snapshot of `/proc`.
    pub fn snapshot() -> Self {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = pids
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Process::read)
            .map(|process| (process.pid, process))
            .collect();
        Self(processes)
    }

    /// All processes of the snapshot.
    pub fn pids(&self) -> impl Iterator<Item = Pid> {
        self.0.keys().copied()
    }

    /// One process of the snapshot.
    pub fn get(&self, pid: Pid) -> Option<&Process> {
        self.0.get(&pid)
    }

    /// The living roots and all their descendants.
    pub fn tree(&self, roots: impl IntoIterator<Item = Pid>) -> HashSet<Pid> {
        let mut found = HashSet::new();
        let mut open: Vec<Pid> = roots.into_iter().filter(|pid| self.0.contains_key(pid)).collect();
        while let Some(pid) = open.pop() {
            if found.insert(pid) {
                open.extend(self.0.values().filter(|p| p.parent == pid).map(|p| p.pid));
            }
        }
        found
    }
}

/// The children of a single-threaded process (proc(5), `children`): one small file to read, for
/// those who look often. Unreaped dead ones are among them.
pub fn children(parent: Pid) -> Vec<Pid> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    list.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// User and system time of all processes, past and present, of a control group in µs; `None` when
/// the directory is no group (cgroups(7)).
pub fn cgroup_cpu_us(directory: &Path) -> Option<u64> {
    let stat = fs::read_to_string(directory.join("cpu.stat")).ok()?;
    let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    usage.trim().parse().ok()
}

/// Proportional set size of one process in bytes; 0 when it is gone or may not be read.
pub fn pss_bytes(pid: Pid) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kib = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = kib.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 900 1 1";
        let process = Process::parse(line).expect("the line is complete");
        assert_eq!((process.pid, process.name.as_str(), process.parent), (42, "a) b (c", 7));
        assert_eq!((process.cpu_us, process.started_ticks), (1_000_000, 900));
        assert!(!process.zombie);
    }

    #[test]
    fn a_truncated_line_is_rejected() {
        assert_eq!(Process::parse("42 (php) S 7"), None);
    }

    #[test]
    fn the_tree_of_this_process_holds_its_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
        let tree = ProcessTable::snapshot().tree([std::process::id()]);
        child.kill().expect("the child is ours");
        child.wait().expect("the child is ours");
        assert!(tree.contains(&child.id()));
    }
}
