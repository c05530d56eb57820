//! The processors: how many there are, and how much of them a pool of workers takes.
//!
//! Called at ticks while requests wait. Invariant: what a worker waits in front of a busy processor counts as if it
//! computed, since a further worker would wait there as well.

use crate::thread_times::ThreadTimes;
use std::fs;

/// An interval that is shorter says little.
pub const SHORTEST_MS: u64 = 20;
/// After a longer one nobody knows what came when.
const LONGEST_MS: u64 = 200;

/// Processors that this process may use: those of the machine, less what affinity and control
/// groups withhold.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The work of some processes, from look to look.
#[derive(Debug, Default)]
pub struct Computing {
    /// When it was last looked at; 0 before the first time.
    at_ms: u64,
    /// The processes, and how long each has computed or been ready to.
    known: Vec<(i32, u64)>,
    percent: u64,
}

impl Computing {
    /// How much of the processors these processes take, in percent of one. Looks again after
    /// [`SHORTEST_MS`].
    pub fn percent(&mut self, now_ms: u64, pids: impl Iterator<Item = i32>) -> u64 {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        if self.at_ms != 0 && elapsed_ms < SHORTEST_MS {
            return self.percent;
        }
        let since = (self.at_ms != 0 && elapsed_ms <= LONGEST_MS).then_some(elapsed_ms);
        let earlier = std::mem::take(&mut self.known);
        (self.at_ms, self.percent) = (now_ms, 0);
        for pid in pids {
            let used_ns = ThreadTimes::of_process(pid).map(|times| times.total_ns());
            let before = earlier.iter().find(|(known, _)| *known == pid);
            self.percent += match (since, before, used_ns) {
                (Some(ms), Some((_, before_ns)), Some(used_ns)) => {
                    (used_ns.saturating_sub(*before_ns) / (ms * 10_000)).min(100)
                }
                // Without an interval, or with a kernel that does not count: what it does now.
                _ => 100 * u64::from(is_running(pid)),
            };
            self.known.extend(used_ns.map(|used_ns| (pid, used_ns)));
        }
        self.percent
    }
}

/// Whether a process computes, or is ready to. One that has gone does not.
fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.ok().and_then(|stat| process_state(&stat)) == Some('R')
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
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = (self.0.kill(), self.0.wait());
        }
    }

    fn run(script: &str) -> Killed {
        Killed(Command::new("sh").args(["-c", script]).spawn().unwrap())
    }

    #[test]
    fn a_process_that_computes_counts_and_one_that_sleeps_does_not() {
        let (computes, sleeps) = (run("while :; do :; done"), run("exec sleep 60"));
        let pids = [&computes, &sleeps].map(|child| child.0.id() as i32);
        let (mut computing, began) = (Computing::default(), Instant::now());
        let now_ms = || 1 + began.elapsed().as_millis() as u64;
        // The shell of the second becomes `sleep` first.
        while computing.percent(now_ms(), pids.into_iter()) != 100 || now_ms() < 50 {
            std::thread::sleep(Duration::from_millis(SHORTEST_MS));
            assert!(began.elapsed().as_secs() < 60, "{computing:?}");
        }
        // Within the shortest interval the answer stays.
        assert_eq!(computing.percent(computing.at_ms + 1, std::iter::empty()), 100);
        assert_eq!(computing.percent(now_ms() + LONGEST_MS, [i32::MAX].into_iter()), 0);
    }

    #[test]
    fn the_state_is_found_behind_any_command() {
        assert_eq!(process_state("42 (php) S 1 42 0"), Some('S'));
        assert_eq!(process_state("42 (a ) R (b) R 1 42 0"), Some('R'));
        assert_eq!(process_state("42 (php"), None);
        assert_eq!(process_state("42 (php)"), None);
    }
}
