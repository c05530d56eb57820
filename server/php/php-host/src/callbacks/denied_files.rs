//! Files that were denied. Called by `denied_files.c`.

use super::slice;
use crate::sandbox::denials::{Use, denied};
use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;
use std::path::Path;

/// # Safety
/// `path` is readable for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_denied(usage: c_int, path: *const c_char, len: usize) {
    let usage = match usage {
        1 => Use::Reads,
        2 => Use::Writes,
        _ => Use::Changes,
    };
    // SAFETY: this function's contract.
    let path = Path::new(OsStr::from_bytes(unsafe { slice(path, len) }));
    // After a panic, which is our bug, a line is missing in the log.
    let _ = catch_unwind(|| denied(path, usage));
}
