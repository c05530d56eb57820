//! How busy the machine's processors are, and whether a worker uses one.
//!
//! Called at ticks while the size of a pool is in question. Invariant: parsing is pure; text that
//! is not as proc(5) says gives `None`, never a guess.

use crate::cgroup;
use std::fs;

const GROUP_USAGE: cgroup::Value =
    cgroup::Value { controller: "cpuacct", file_v1: "cpuacct.usage", file_v2: "cpu.stat" };

/// The processors at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    at_ms: u64,
    machine: MachineTimes,
    /// Processor time that the control group has used, in µs. With a quota, processors can be
    /// idle and still not ours.
    group_us: Option<u64>,
}

impl Sample {
    /// The processors at `now_ms` (monotonic); `None` where there is no `/proc`.
    pub fn take(now_ms: u64) -> Option<Self> {
        let machine = MachineTimes::parse(&fs::read_to_string("/proc/stat").ok()?)?;
        let group_us = GROUP_USAGE.read().next().and_then(|text| parse_group_usage(&text));
        Some(Self { at_ms: now_ms, machine, group_us })
    }

    /// Share of the time since `earlier` that processors were busy, in percent: all of the
    /// machine's, or the `cores` that this process may use, whichever is busier. `None` when no
    /// tick has passed. A tick is usually 10 ms: take samples at least 50 ms apart.
    pub fn busy_percent_since(&self, earlier: &Self, cores: usize) -> Option<u8> {
        let machine = self.machine.busy_percent_since(&earlier.machine)?;
        let ours = self.group_percent_since(earlier, cores).unwrap_or(0);
        Some(machine.max(ours))
    }

    fn group_percent_since(&self, earlier: &Self, cores: usize) -> Option<u8> {
        let used_us = self.group_us?.saturating_sub(earlier.group_us?);
        let there_were_us =
            self.at_ms.saturating_sub(earlier.at_ms).saturating_mul(1_000 * cores as u64);
        percent(used_us, there_were_us)
    }
}

/// Never more than 100: the two are not read at the same instant.
fn percent(part: u64, whole: u64) -> Option<u8> {
    let percent = (u128::from(part) * 100).checked_div(u128::from(whole))?;
    Some(percent.min(100) as u8)
}

/// Processor times since boot, all processors together, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MachineTimes {
    busy: u64,
    idle: u64,
}

impl MachineTimes {
    /// Reads the first line of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq
    /// steal; what follows (guest times) is part of user and nice already.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.lines().next()?.split_ascii_whitespace();
        if fields.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = fields.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_user, _nice, _system, idle, ..] = ticks.as_slice() else { return None };
        let idle = idle.saturating_add(ticks.get(4).copied().unwrap_or(0));
        let total = ticks.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        Some(Self { busy: total - idle, idle })
    }

    fn busy_percent_since(&self, earlier: &Self) -> Option<u8> {
        // The kernel's idle times can step back a little (proc(5)).
        let busy = self.busy.saturating_sub(earlier.busy);
        let idle = self.idle.saturating_sub(earlier.idle);
        percent(busy, busy.saturating_add(idle))
    }
}

/// Used processor time in µs: `usage_usec N` among other lines (version 2), or ns (version 1).
fn parse_group_usage(text: &str) -> Option<u64> {
    if let Ok(ns) = text.trim().parse::<u64>() {
        return Some(ns / 1_000);
    }
    text.lines().find_map(|line| line.strip_prefix("usage_usec "))?.trim().parse().ok()
}

/// Processor time of all programs since boot, in µs.
pub fn machine_us() -> Option<u64> {
    let times = MachineTimes::parse(&fs::read_to_string("/proc/stat").ok()?)?;
    Some(times.busy.saturating_mul(us_per_tick()))
}

/// Processor time of a process and of its children that have ended, in µs; `None` if it has gone.
pub fn process_us(pid: i32) -> Option<u64> {
    let ticks = parse_process_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    Some(ticks.saturating_mul(us_per_tick()))
}

fn us_per_tick() -> u64 {
    1_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// utime, stime, cutime and cstime, the 14th to 17th field (proc_pid_stat(5)). The second is the command in parentheses.
fn parse_process_ticks(stat: &str) -> Option<u64> {
    let (_, after_command) = stat.rsplit_once(')')?;
    let times: Vec<u64> = after_command
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    (times.len() == 4).then(|| times.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks)))
}

/// Processors that this process may use: those of the machine, less what affinity and control
/// groups withhold.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many of these processes sleep in the kernel and so use no processor. One that has gone
/// counts as sleeping.
pub fn count_sleeping(pids: impl IntoIterator<Item = i32>) -> usize {
    let sleeps = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.ok().and_then(|stat| process_state(&stat)) != Some('R')
    };
    pids.into_iter().filter(sleeps).count()
}

/// The state letter of `/proc/PID/stat`. It follows the command in parentheses, which may itself
/// contain any character.
pub fn process_state(stat: &str) -> Option<char> {
    let (_, after_command) = stat.rsplit_once(')')?;
    after_command.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "cpu  1000 0 500 8000 100 0 50 0 0 0\ncpu0 1 2 3 4\nintr 5\n";

    fn machine(later: &str) -> Option<u8> {
        let earlier = MachineTimes::parse(EARLIER).unwrap();
        MachineTimes::parse(later).unwrap().busy_percent_since(&earlier)
    }

    #[test]
    fn the_busy_share_leaves_out_idling_and_waiting_for_disks() {
        // 30 + 5 + 10 + 1 + 2 + 2 busy, 40 + 10 idle.
        assert_eq!(machine("cpu  1030 5 510 8040 110 1 52 2 9 9\n"), Some(50));
    }

    #[test]
    fn without_a_tick_in_between_nothing_is_known() {
        assert_eq!(machine(EARLIER), None);
    }

    #[test]
    fn times_that_step_back_are_taken_as_still() {
        assert_eq!(machine("cpu  1010 0 500 7990 100 0 50 0 0 0\n"), Some(100));
    }

    #[test]
    fn old_kernels_have_fewer_columns() {
        assert_eq!(MachineTimes::parse("cpu 1 2 3 4"), Some(MachineTimes { busy: 6, idle: 4 }));
    }

    #[test]
    fn an_invalid_stat_file_gives_nothing() {
        for text in ["", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4", "cpu 1 2 x 4", "intr 1 2 3 4"] {
            assert_eq!(MachineTimes::parse(text), None, "{text:?}");
        }
        let largest = format!("cpu {0} {0} {0} {0} {0} {0} {0} {0}", u64::MAX);
        assert!(MachineTimes::parse(&largest).is_some());
    }

    #[test]
    fn a_used_up_quota_counts_as_busy_processors() {
        let sample = |at_ms, line: &str, group_us| Sample {
            at_ms,
            machine: MachineTimes::parse(line).unwrap(),
            group_us,
        };
        let earlier = sample(1_000, "cpu 0 0 0 0", Some(500));
        // 100 ms in which sixteen processors were mostly idle and one of ours was used up.
        let later = sample(1_100, "cpu 10 0 0 150", Some(95_500));
        assert_eq!(later.busy_percent_since(&earlier, 1), Some(95));
        assert_eq!(later.busy_percent_since(&earlier, 4), Some(23));
        let no_group = Sample { group_us: None, ..later };
        assert_eq!(no_group.busy_percent_since(&earlier, 1), Some(6));
    }

    #[test]
    fn both_versions_of_a_groups_usage_are_read() {
        let v2 = "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n";
        assert_eq!(parse_group_usage(v2), Some(1_234));
        assert_eq!(parse_group_usage("1234567\n"), Some(1_234));
        assert_eq!(parse_group_usage("nothing\n"), None);
    }

    #[test]
    fn the_state_is_found_behind_any_command() {
        assert_eq!(process_state("42 (php) S 1 42 0"), Some('S'));
        assert_eq!(process_state("42 (a ) R (b) R 1 42 0"), Some('R'));
        assert_eq!(process_state("42 (php"), None);
        assert_eq!(process_state("42 (php)"), None);
    }

    #[test]
    fn the_time_of_a_process_includes_its_children() {
        let stat = "42 (a ) 1 (b) S 1 42 42 0 -1 4194304 90 80 0 0 11 7 5 3 20 0 1 0 99 1 2";
        assert_eq!(parse_process_ticks(stat), Some(26));
        for text in ["", "42 (a) S 1 2", "42 (a) S 1 42 42 0 -1 4194304 90 80 0 0 11 7 x 3 20"] {
            assert_eq!(parse_process_ticks(text), None, "{text:?}");
        }
        assert_eq!(process_us(i32::MAX), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        assert!(Sample::take(0).is_some());
        assert!(machine_us() > process_us(std::process::id() as i32));
        assert!(cores() >= 1);
    }

    #[test]
    fn a_process_that_has_gone_uses_no_processor() {
        assert_eq!(count_sleeping([i32::MAX]), 1);
    }
}
