//! What runs below the zygote without being a worker: programs that scripts have started, children
//! that they have forked off.
//!
//! Called by the zygote. Each worker leads a process group of its own, which is ended with it when it
//! does not end in order: at a deadline, in a crash. What has left that group, or outlives a worker
//! that ended in order, is adopted here (`PR_SET_CHILD_SUBREAPER`). Invariant: when the zygote leaves
//! nothing below it is left.

use std::time::{Duration, Instant};

/// How long the end of what was killed is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// In the zygote, before the first worker: orphans become its children, and the end of its own
/// parent wakes it even when it was stopped. It then sees that the control socket is closed.
pub(crate) fn adopt() {
    // SAFETY: plain system calls without pointers.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT);
    }
}

/// In a worker: what it starts can be ended with it.
pub(crate) fn lead_group() {
    // SAFETY: a plain system call; it cannot fail for a fresh child.
    unsafe { libc::setpgid(0, 0) };
}

/// Ends what a worker has left in its group. Its number names no other group: while one with it has
/// members it is given to no new process.
pub(crate) fn end_group(worker: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(-worker, libc::SIGKILL) };
}

/// Ends everything below this process. Whatever loses its parent meanwhile is adopted and ended in
/// the next round.
pub(crate) fn end_all() {
    let began = Instant::now();
    loop {
        let children = children();
        if children.is_empty() || began.elapsed() > PATIENCE {
            return;
        }
        for child in children {
            // SAFETY: a plain system call; the process id is that of a child which nobody else waits
            // for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
        // SAFETY: no status is asked for.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
    }
}

/// The children of the only thread (proc_tid_children(5)).
fn children() -> Vec<i32> {
    let listed = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
