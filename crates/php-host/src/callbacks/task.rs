//! Tasks of a script per request. Called by `primitives.c`; a resident script's are fetches
//! ([`super::worker_script`]).

use super::{slice, with};
use crate::engine::{RawFetchResult, Str};
use outboard_ring::task::TaskCall;
use std::ffi::{c_int, c_void};

/// False when the gateway cannot be asked. The strings of `answer` live until the next call. Below
/// 0 `retries` are as configured.
///
/// # Safety
/// As [`with`]; `name` and `data` are readable, `answer` writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_blocking_dispatch(
    exchange: *mut c_void,
    name: Str,
    data: Str,
    delay_ms: u64,
    retries: c_int,
    answer: *mut RawFetchResult,
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
            answer.write(fetched.into());
            true
        })
    }
}
