//! A program that starts a server: its workers are forked, it forks children. Called by the C of that part
//! (`build/parts.rs`) and `fork/children.c`.

use super::slice;
use super::worker_script::with;
use crate::worker_script::RunningScript;
use std::ffi::{c_char, c_void};

/// # Safety
/// As [`with`]; `description` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_describe(
    events: *mut c_void,
    description: *const c_char,
    len: usize,
) -> bool {
    // SAFETY: this function's contract.
    let description = unsafe { slice(description, len) };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.describe(description)) }
}

/// # Safety
/// As [`with`]. The result is that of [`RunningScript::fork_workers`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_fork_workers(events: *mut c_void) -> i32 {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.fork_workers()) }
}

/// # Safety
/// As [`with`]; `title` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_set_title(
    events: *mut c_void,
    title: *const c_char,
    len: usize,
) -> bool {
    // SAFETY: this function's contract.
    let title = String::from_utf8_lossy(unsafe { slice(title, len) });
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.set_title(&title)) }
}

/// # Safety
/// As [`with`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_renew(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, RunningScript::renew) }
}
