//! How busy the machine's processors are, and whether a worker uses one.
//!
//! Called at ticks while the size of a pool is in question. Invariant: parsing is pure; text that
//! is not as proc(5) says gives `None`, never a guess.

use std::fs;

/// Processor times since boot, all processors together, in clock ticks (proc(5), `/proc/stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    busy: u64,
    idle: u64,
}

impl Times {
    /// The present times; `None` where there is no `/proc`.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the first line of `/proc/stat`: user nice system idle iowait irq softirq steal; what
    /// follows (guest times) is part of user and nice already.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.lines().next()?.split_ascii_whitespace();
        if fields.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = fields.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else { return None };
        let waiting = rest.first().copied().unwrap_or(0);
        let interrupts_and_steal: u64 = rest.iter().skip(1).sum();
        Some(Self { busy: user + nice + system + interrupts_and_steal, idle: idle + waiting })
    }

    /// Share of the time since `earlier` that processors were busy, in percent; `None` when no
    /// tick has passed. A tick is usually 10 ms: take samples at least 50 ms apart.
    pub fn busy_percent_since(&self, earlier: &Self) -> Option<u8> {
        // The kernel's idle times can step back a little (proc(5)).
        let busy = self.busy.saturating_sub(earlier.busy);
        let idle = self.idle.saturating_sub(earlier.idle);
        let percent = (100 * busy).checked_div(busy + idle)?;
        u8::try_from(percent).ok()
    }
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

    #[test]
    fn the_busy_share_leaves_out_idling_and_waiting_for_disks() {
        let earlier = Times::parse(EARLIER).unwrap();
        let later = Times::parse("cpu  1030 5 510 8040 110 1 52 2 9 9\n").unwrap();
        // 30 + 5 + 10 + 1 + 2 + 2 busy, 40 + 10 idle.
        assert_eq!(later.busy_percent_since(&earlier), Some(50));
    }

    #[test]
    fn without_a_tick_in_between_nothing_is_known() {
        let sample = Times::parse(EARLIER).unwrap();
        assert_eq!(sample.busy_percent_since(&sample), None);
    }

    #[test]
    fn times_that_step_back_are_taken_as_still() {
        let earlier = Times::parse(EARLIER).unwrap();
        let later = Times::parse("cpu  1010 0 500 7990 100 0 50 0 0 0\n").unwrap();
        assert_eq!(later.busy_percent_since(&earlier), Some(100));
    }

    #[test]
    fn old_kernels_have_fewer_columns() {
        assert_eq!(Times::parse("cpu 1 2 3 4"), Some(Times { busy: 6, idle: 4 }));
    }

    #[test]
    fn what_is_no_stat_file_gives_nothing() {
        for text in ["", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4", "cpu 1 2 x 4", "intr 1 2 3 4"] {
            assert_eq!(Times::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_state_is_found_behind_any_command() {
        assert_eq!(process_state("42 (php) S 1 42 0"), Some('S'));
        assert_eq!(process_state("42 (a ) R (b) R 1 42 0"), Some('R'));
        assert_eq!(process_state("42 (php"), None);
        assert_eq!(process_state("42 (php)"), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        assert!(Times::read().is_some());
        assert!(cores() >= 1);
    }

    #[test]
    fn a_process_that_has_gone_uses_no_processor() {
        assert_eq!(count_sleeping([i32::MAX]), 1);
    }
}
