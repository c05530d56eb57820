//! Memory of processes and of the machine.
//!
//! Called at ticks (workers) and at the start (machine). Invariant: parsing is pure; text that does
//! not match proc(5) gives `None`. All sizes are in bytes.

use crate::cgroup;
use std::fs;

const GROUP_LIMIT: cgroup::Value =
    cgroup::Value { controller: "memory", file_v1: "memory.limit_in_bytes", file_v2: "memory.max" };

/// Memory of a process that is in RAM (proc(5), `/proc/PID/statm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// The total.
    pub total_bytes: u64,
    /// Files and shared memory: libraries, opcache, rings.
    pub shared_bytes: u64,
}

impl Resident {
    /// The memory of a process; `None` if it has exited.
    pub fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        Self::parse(&text, rustix::param::page_size() as u64)
    }

    /// Parses `/proc/PID/statm`: size resident shared …, in pages.
    pub fn parse(text: &str, page_bytes: u64) -> Option<Self> {
        let mut pages = text.split_ascii_whitespace().map(str::parse::<u64>);
        let (_size, resident, shared) =
            (pages.next()?.ok()?, pages.next()?.ok()?, pages.next()?.ok()?);
        Some(Self {
            total_bytes: resident.checked_mul(page_bytes)?,
            shared_bytes: shared.checked_mul(page_bytes)?,
        })
    }

    /// An estimate of what the exit of the process would free. Pages that a fork shares with its
    /// parent are counted for both, so the estimate is too high rather than too low.
    pub fn own_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.shared_bytes)
    }
}

/// The memory of an ordinary application, and the least estimate, because fresh workers still grow.
const ASSUMED_BYTES: u64 = 32 << 20;

/// The 95th percentile of the memory of workers. At least 32 MiB, so that a pool of fresh workers
/// is not underestimated.
pub fn p95_bytes(own_bytes: &[u64]) -> u64 {
    let mut sorted = own_bytes.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * 95).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0).max(ASSUMED_BYTES)
}

/// The memory that this process and its children may use: that of the machine, or the limit of a
/// control group. `None` without `/proc`.
pub fn machine_bytes() -> Option<u64> {
    let total_bytes = meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")?;
    let limits_bytes = GROUP_LIMIT.read().filter_map(|text| parse_group_limit(&text));
    Some(limits_bytes.fold(total_bytes, u64::min))
}

/// Without a limit version 2 has `max`, and version 1 a number beyond any machine.
fn parse_group_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The memory that is available without swapping (proc(5), `MemAvailable`).
pub fn available_bytes() -> Option<u64> {
    meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// One value of `/proc/meminfo`.
pub fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_what_is_resident_and_not_shared() {
        let resident = Resident::parse("7650 4170 3900 5 0 1230 0\n", 4096).unwrap();
        assert_eq!(resident.total_bytes, 4170 * 4096);
        assert_eq!(resident.own_bytes(), 270 * 4096);
    }

    #[test]
    fn an_invalid_statm_file_gives_nothing() {
        for text in ["", "1 2", "1 x 3", "1 18446744073709551615 0"] {
            assert_eq!(Resident::parse(text, 4096), None, "{text:?}");
        }
    }

    #[test]
    fn only_a_running_process_has_memory() {
        let own = Resident::read(std::process::id().cast_signed()).unwrap();
        assert!(own.own_bytes() > 0 && own.own_bytes() < own.total_bytes);
        assert_eq!(Resident::read(i32::MAX), None);
    }

    #[test]
    fn meminfo_is_read_by_exact_name() {
        let text = "MemTotal:       24684084 kB\nMemFree: 1 kB\nMemAvailable:   23740916 kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(24_684_084 * 1024));
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(23_740_916 * 1024));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
        assert_eq!(meminfo_bytes("MemTotal: 12 pages\n", "MemTotal"), None);
    }

    #[test]
    fn a_group_without_a_limit_has_none() {
        assert_eq!(parse_group_limit("max\n"), None);
        assert_eq!(parse_group_limit("536870912\n"), Some(512 << 20));
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(machine_bytes().unwrap() > 1 << 20);
        assert!(available_bytes().unwrap() > 0);
    }

    #[test]
    fn nineteen_of_twenty_workers_fit_the_estimate() {
        let mib: Vec<u64> = (1..=100).rev().map(|n| n << 20).collect();
        assert_eq!(p95_bytes(&mib), 95 << 20);
        assert_eq!(p95_bytes(&[80 << 20, 50 << 20]), 80 << 20);
        assert_eq!(p95_bytes(&[]), ASSUMED_BYTES);
        assert_eq!(p95_bytes(&[3 << 20]), ASSUMED_BYTES);
    }
}
