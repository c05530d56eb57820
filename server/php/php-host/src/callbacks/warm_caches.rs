//! The entries of caches that a rewound worker keeps. Called by `warm_caches.c` and the caches. If a function states
//! no safety contract, it has that of [`with`].

use super::slice;
use super::worker_script::with;
use crate::rewind::CacheEntry;
use std::ffi::{c_char, c_void};
use std::ptr;

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_learns(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.rewound().is_some_and(|rewind| rewind.is_learning())) }
}

/// # Safety
/// As [`with`]; both texts are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_cache_used(
    events: *mut c_void,
    cache: u8,
    first: *const c_char,
    first_len: usize,
    second: *const c_char,
    second_len: usize,
) {
    // SAFETY: this function's contract.
    let (first, second) = unsafe { (slice(first, first_len), slice(second, second_len)) };
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| {
            if let Some(rewind) = script.rewound() {
                rewind.note_use(CacheEntry::new(cache, first, second));
            }
        });
    }
}

/// The key of an entry that is due, with its length without the last NUL; NULL: there is none. The text is valid
/// until the next call.
///
/// # Safety
/// As [`with`]; `cache` and `len` can be written to.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_next_due(
    events: *mut c_void,
    cache: *mut u8,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| match script.rewound().and_then(|rewind| rewind.next_due()) {
            Some(entry) => {
                *cache = entry.cache;
                *len = entry.key.len() - 1;
                entry.key.as_ptr().cast()
            }
            None => ptr::null(),
        })
    }
}
