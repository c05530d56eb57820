//! The calls of `connections.c` and `connections/kept.c`: descriptors of the host, connections that a worker
//! keeps. If a function states no safety contract, it has that of [`with`].

use super::slice;
use super::worker_script::with;
use crate::kept_connections::Offer;
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::IntoRawFd;

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_own_descriptor(events: *mut c_void, number: c_int) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.is_own_descriptor(number)) }
}

/// `outboard_kept_offer` of `connections/connections.h`.
#[repr(C)]
pub(super) struct RawOffer {
    replies: u32,
    session: u64,
    key: *const c_char,
    key_len: usize,
    greeting: *const c_char,
    greeting_len: usize,
    reset: *const c_char,
    reset_len: usize,
}

/// # Safety
/// As [`with`]; the offer and what it points to are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_keep_connection(
    events: *mut c_void,
    connection: c_int,
    offer: *const RawOffer,
) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        let raw = &*offer;
        let offer = Offer {
            key: slice(raw.key, raw.key_len),
            session: raw.session,
            greeting: slice(raw.greeting, raw.greeting_len),
            reset: slice(raw.reset, raw.reset_len),
            replies: raw.replies,
        };
        with(events, |script| script.kept_connections.keep(connection, &offer))
    }
}

/// Returns a descriptor that belongs to the caller, or -1. The greeting is readable until the next call.
///
/// # Safety
/// As [`with`]; the key is readable, the other pointers are writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_take_connection(
    events: *mut c_void,
    key: *const c_char,
    key_len: usize,
    session: *mut u64,
    greeting: *mut *const c_char,
    greeting_len: *mut usize,
) -> c_int {
    // SAFETY: this function's contract.
    unsafe {
        let key = slice(key, key_len);
        with(events, |script| {
            let Some((connection, number)) = script.kept_connections.take(key) else { return -1 };
            let text = script.kept_connections.greeting();
            *session = number;
            *greeting = text.as_ptr().cast();
            *greeting_len = text.len();
            connection.into_raw_fd()
        })
    }
}
