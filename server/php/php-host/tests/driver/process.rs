//! Other processes, as the tests observe them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Whether the process exists and is not a zombie.
pub fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Kills a process.
pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Waits for a condition.
#[track_caller]
pub fn eventually(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(30), "the condition never held");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The children of a process with one thread.
pub fn children(pid: u32) -> BTreeSet<i32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    listed.unwrap_or_default().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}
