//! The regular expressions that a rewound worker keeps. Called by `regex_cache.c`. If a function states no safety
//! contract, it has that of [`with`].

use super::slice;
use super::worker_script::with;
use std::ffi::{c_char, c_void};
use std::ptr;

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_learns_patterns(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| script.rewound().is_some_and(|rewind| rewind.learns_patterns()))
    }
}

/// # Safety
/// As [`with`]; `pattern` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_pattern_compiled(
    events: *mut c_void,
    pattern: *const c_char,
    len: usize,
) {
    // SAFETY: this function's contract.
    let pattern = unsafe { slice(pattern, len) };
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| {
            if let Some(rewind) = script.rewound() {
                rewind.note_pattern(pattern);
            }
        });
    }
}

/// NULL: there is none. The text is valid until the next call.
///
/// # Safety
/// As [`with`]; `len` can be written to.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_next_pattern(
    events: *mut c_void,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| match script.rewound().and_then(|rewind| rewind.next_pattern()) {
            Some(pattern) => {
                *len = pattern.len();
                pattern.as_ptr().cast()
            }
            None => ptr::null(),
        })
    }
}
