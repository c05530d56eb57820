//! What the start of a script reads. Called by `boot_files.c` and `snapshot.c`.

use super::slice;
use crate::boot_files::{self, Use};
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;
use std::path::Path;

/// # Safety
/// `path` is readable for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_boot_uses(kind: c_int, path: *const c_char, len: usize) {
    let kind = match kind {
        1 => Use::Reads,
        2 => Use::Writes,
        3 => Use::Lists,
        4 => Use::Misses,
        5 => Use::Includes,
        _ => Use::Follows,
    };
    // SAFETY: this function's contract.
    let path = Path::new(OsStr::from_bytes(unsafe { slice(path, len) }));
    // After a panic, which is our bug, a file is missing in the list.
    let _ = catch_unwind(|| boot_files::record(kind, path));
}

/// False if there are too many keys.
///
/// # Safety
/// `key` is readable for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_boot_depends(key: *const c_char, len: usize) -> bool {
    // SAFETY: this function's contract.
    let key = String::from_utf8_lossy(unsafe { slice(key, len) });
    catch_unwind(|| boot_files::depend(&key)).unwrap_or(false)
}

#[unsafe(no_mangle)]
extern "C" fn outboard_rs_boot_max_age(seconds: i64) {
    let _ = catch_unwind(|| boot_files::limit_age(seconds.try_into().unwrap_or_default()));
}

/// # Safety
/// As [`super::worker_script::with`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_boot_ends(events: *mut c_void) {
    // SAFETY: this function's contract.
    unsafe { super::worker_script::with(events, |script| script.end_boot()) }
}
