//! Backtraces of the PHP that a process runs, and the request that each is about: `sapi/request/backtrace.c`.

use super::structures::Subject;
use outboard_ring::frame::Tag;
use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

unsafe extern "C" {
    fn outboard_backtrace_install(signal_number: i32);
    fn outboard_backtrace_begin(slot: u32, generation: u32);
    fn outboard_backtrace_end();
    fn outboard_backtrace_subject(memory: RawFd, found: *mut Subject) -> bool;
    fn outboard_backtrace_root() -> *const c_void;
    fn outboard_backtrace_from(pid: i32, memory: RawFd, root: *const c_void);
}

/// Writes a PHP backtrace on `signal` from now on.
pub(crate) fn install(signal: i32) {
    // SAFETY: sets a signal handler that is async-signal-safe (backtrace.c).
    unsafe { outboard_backtrace_install(signal) }
}

/// The request that the worker with this memory runs: `None` between requests.
pub(crate) fn subject_of(memory: BorrowedFd<'_>) -> Result<Option<Tag>, Unreadable> {
    let mut found = Subject::default();
    // SAFETY: `found` has C's layout (`structures`); the C side reads the other process with a
    // system call that fails if it has ended.
    if !unsafe { outboard_backtrace_subject(memory.as_raw_fd(), &raw mut found) } {
        return Err(Unreadable);
    }
    let tag = Tag { slot: found.slot, generation: found.generation };
    Ok((found.running != 0).then_some(tag))
}

/// The zygote cannot read its worker's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unreadable;

/// The address of PHP's pointer to the innermost frame, which is the same in forks.
pub(crate) fn root() -> usize {
    // SAFETY: takes an address and reads nothing.
    unsafe { outboard_backtrace_root() }.addr()
}

/// Writes the backtrace of another process of this program, whose pointer is at `root`,
/// through [`crate::backtrace`]. Without its `memory` it takes the right to trace the process.
pub(crate) fn write_from(pid: i32, memory: Option<BorrowedFd<'_>>, root: usize) {
    let memory = memory.map_or(-1, |memory| memory.as_raw_fd());
    // SAFETY: as in `subject_of`; `root` is an address in the other process and is not read here.
    unsafe { outboard_backtrace_from(pid, memory, ptr::without_provenance(root)) }
}

/// A backtrace requested from now on is for `tag`.
pub(super) fn begin(tag: Tag) {
    // SAFETY: stores two numbers for the handler of the signal.
    unsafe { outboard_backtrace_begin(tag.slot, tag.generation) }
}

/// No request runs any more.
pub(super) fn end() {
    // SAFETY: as in `begin`.
    unsafe { outboard_backtrace_end() }
}
