//! Retiring snapshots. Called by `snapshot.c`.

use super::{slice, with};
use crate::worker_script::RunningScript;
use outboard_ring::frame::Tag;
use std::ffi::{c_char, c_void};

/// Returns how many snapshots were retired; negative if the gateway cannot be reached.
///
/// # Safety
/// `exchange` is NULL or valid for [`with`], `events` NULL or valid for
/// [`super::worker_script::with`]; `key` is readable for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_retire_snapshot(
    exchange: *mut c_void,
    events: *mut c_void,
    key: *const c_char,
    len: usize,
) -> i64 {
    // SAFETY: this function's contract.
    let key = unsafe { slice(key, len) };
    let retired = if !exchange.is_null() {
        // SAFETY: this function's contract.
        unsafe { with(exchange, None, |exchange| exchange.retire_snapshot(key)) }
    } else if !events.is_null() {
        let retire = |script: &mut RunningScript| script.retire_snapshot(Tag::default(), key);
        // SAFETY: this function's contract.
        unsafe { super::worker_script::with(events, retire) }
    } else {
        None
    };
    retired.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1)
}
