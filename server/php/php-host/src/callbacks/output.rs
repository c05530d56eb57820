//! Output: write, flush, finish. Called by `output.c` and `functions.c`.

use super::{slice, with};
use std::ffi::{c_char, c_void};

/// Returns how many bytes were taken; fewer than `len` if the client has disconnected.
///
/// # Safety
/// As [`with`]; `bytes` is valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_write(
    exchange: *mut c_void,
    bytes: *const c_char,
    len: usize,
) -> usize {
    // SAFETY: this function's contract.
    unsafe { with(exchange, 0, |exchange| exchange.write(slice(bytes, len))) }
}

/// False if the client has disconnected.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_flush(exchange: *mut c_void, handled: bool) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(exchange, false, |exchange| exchange.flush(handled)) }
}

/// Whether the client is slow, so that the script should wait.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_paused(exchange: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(exchange, false, |exchange| exchange.is_paused()) }
}

/// Wakes this coroutine when the client reads again.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_await_client(exchange: *mut c_void, waiter: u64) {
    // SAFETY: this function's contract.
    unsafe { with(exchange, (), |exchange| exchange.await_client(waiter)) }
}

/// Completes the response. False if the client has disconnected.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_finish(exchange: *mut c_void, handled: bool) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(exchange, false, |exchange| exchange.finish(handled)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_finished(exchange: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(exchange, true, |exchange| exchange.is_finished()) }
}
