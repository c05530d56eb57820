//! Processes below the zygote that are not workers: programs and forked children of scripts.
//!
//! Called by the zygote and its workers. Each worker leads its own process group, which is killed with it if
//! the worker does not exit regularly (deadline, crash). Processes that left the group or outlive a
//! regular exit are adopted (`PR_SET_CHILD_SUBREAPER`). With isolation by fork or rewind each worker adopts
//! its own, so that what the zygote adopts belongs to a worker that has ended. Invariants: nothing below the
//! zygote survives it; with such an isolation nothing that a request has started survives the request.

use rustix::process::{Pid, Signal, getpgid, getsid, kill_process_group};
use rustix::thread::{Timespec, nanosleep};
use std::time::{Duration, Instant};

/// How long to wait for killed processes.
const PATIENCE: Duration = Duration::from_secs(2);

/// In a zygote, before the first worker, or in a worker: orphans become its children.
pub(crate) fn adopt() {
    // SAFETY: a plain system call without pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// In a worker: starts a process group.
pub(crate) fn lead_group() {
    // SAFETY: a plain system call; it cannot fail for a fresh child.
    unsafe { libc::setpgid(0, 0) };
}

/// Kills the rest of a worker's process group. Its id is not reused while the group has members.
pub(crate) fn end_group(worker: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(-worker, libc::SIGKILL) };
}

/// Kills the orphans of a sibling that has exited, with their process groups. They have stayed in the
/// session that it led; those that left that are killed at this process's end.
pub(crate) fn end_session(sibling: i32) {
    for child in children().into_iter().filter_map(Pid::from_raw) {
        let is_orphan = getsid(Some(child)).is_ok_and(|leader| leader.as_raw_pid() == sibling);
        if is_orphan && let Ok(group) = getpgid(Some(child)) {
            // It fails for a group whose last member was reaped.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Kills everything below this process. Processes that lose their parent meanwhile are adopted and
/// killed in the next round. False if some are still there after a while.
pub(crate) fn end_all() -> bool {
    let began = Instant::now();
    while any_is_left() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        end_others(|_| false);
        pause();
    }
    true
}

/// Collects the children that have exited; whether there are others.
pub(crate) fn any_is_left() -> bool {
    loop {
        // SAFETY: without a place for the status.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) } {
            0 => return true,
            -1 => return false,
            _ => {}
        }
    }
}

/// Kills the children of this process that are not known. Those that they leave become its children when they
/// have ended.
pub(crate) fn end_others(is_known: impl Fn(i32) -> bool) {
    for child in children().into_iter().filter(|child| !is_known(*child)) {
        // SAFETY: a plain system call; nothing else reaps this child, so its pid is not reused.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
}

/// Sleeps for a moment by the system call itself: libc's function suspends the PHP code that runs, and
/// a zygote's event loop has ended.
fn pause() {
    let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: 50_000 });
}

/// The children of the only thread (proc_tid_children(5)).
pub(crate) fn children() -> Vec<i32> {
    let listed = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
