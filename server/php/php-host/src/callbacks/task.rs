//! Tasks in classic mode. Called by `primitives.c`; in worker mode they are fetches
//! ([`super::worker_script`]).

use super::{slice, with};
use crate::engine::structures::{RawFetchResult, Str};
use outboard_ring::task::TaskCall;
use std::ffi::{c_int, c_void};

/// False if the gateway cannot be reached. The strings of `result` live until the next call.
/// Negative
/// `retries` mean the configured number.
///
/// # Safety
/// As [`with`]; `name` and `data` are readable, `result` writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_blocking_dispatch(
    exchange: *mut c_void,
    name: Str,
    data: Str,
    delay_ms: u64,
    retries: c_int,
    result: *mut RawFetchResult,
) -> bool {
    // SAFETY: this function's contract.
    let (name, data) = unsafe { (slice(name.ptr, name.len), slice(data.ptr, data.len)) };
    let retries = u8::try_from(retries).ok();
    let data_bytes = data.len() as u32;
    let call = TaskCall { name, data_bytes, delay_ms, is_awaited: false, retries };
    // SAFETY: this function's contract.
    unsafe {
        with(exchange, false, |exchange| {
            let Some(fetched) = exchange.dispatch(call, data) else { return false };
            result.write(fetched.into());
            true
        })
    }
}
