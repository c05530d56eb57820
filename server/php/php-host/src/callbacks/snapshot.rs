//! The snapshot of a booted script: what the boot has read of a request, and the rewinds to it.
//!
//! Called by `snapshot/boot_request_reads.c`, `rewind/rewind.c` and `worker/worker_script.c`. If a function states no
//! safety contract, it has that of [`with`].

use super::worker_script::with;
use super::{bytes, slice};
use crate::engine::structures::Str;
use outboard_ring::control::RequestRead;
use std::ffi::{c_char, c_void};

/// # Safety
/// As [`with`]. Returns in the worker, or in each fork of the zygote.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_snapshot(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.snapshot()) }
}

/// # Safety
/// As [`with`]; both texts are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_request_read(
    events: *mut c_void,
    name: Str,
    file: Str,
    line: u32,
) {
    // SAFETY: this function's contract.
    let (name, file) = unsafe { (text(name), text(file)) };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.request_read(RequestRead { name, file, line })) }
}

/// # Safety
/// As [`with`]; `why` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_refuse_snapshot(
    events: *mut c_void,
    why: *const c_char,
    len: usize,
) {
    // SAFETY: this function's contract.
    let why = String::from_utf8_lossy(unsafe { slice(why, len) }).into_owned();
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.refuse_snapshot(why)) }
}

/// Zeroed memory that is not rewound, and is never freed; NULL if workers are not rewound.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_rewind_memory(events: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: this function's contract.
    if !unsafe { with(events, |script| script.takes_snapshot()) } {
        return std::ptr::null_mut();
    }
    Vec::leak(vec![0_u128; bytes.div_ceil(size_of::<u128>())]).as_mut_ptr().cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_may_rewind(events: *mut c_void, is_damaged: bool) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.may_rewind(is_damaged)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_rewound(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.is_rewound()) }
}

/// # Safety
/// As [`with`]; the process has one thread, which runs on a stack of [`outboard_rs_rewind_memory`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_rewind(events: *mut c_void, stack_pointer: *const c_void) {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.rewind(stack_pointer.addr())) }
}

/// # Safety
/// The bytes are readable.
unsafe fn text(text: Str) -> String {
    // SAFETY: the caller's contract.
    String::from_utf8_lossy(unsafe { bytes(text) }).into_owned()
}
