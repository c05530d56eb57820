//! The response head. Called by `headers.c`.

use super::{slice, with};
use std::ffi::{c_char, c_void};

/// Starts the head.
///
/// # Safety
/// As [`with`]; `reason` is valid for `reason_len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_head(
    exchange: *mut c_void,
    status: i32,
    reason: *const c_char,
    reason_len: usize,
) {
    let status = u16::try_from(status).unwrap_or(500);
    // SAFETY: this function's contract.
    unsafe { with(exchange, (), |exchange| exchange.start_head(status, slice(reason, reason_len))) }
}

/// Adds a line.
///
/// # Safety
/// As [`with`]; `line` is valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_head_line(exchange: *mut c_void, line: *const c_char, len: usize) {
    // SAFETY: this function's contract.
    unsafe { with(exchange, (), |exchange| exchange.add_head_line(slice(line, len))) }
}

/// Adds a line that is sent behind the body.
///
/// # Safety
/// As [`with`]; `line` is valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_trailer(exchange: *mut c_void, line: *const c_char, len: usize) {
    // SAFETY: this function's contract.
    unsafe { with(exchange, (), |exchange| exchange.add_trailer(slice(line, len))) }
}

/// Sends the started head as an interim one. False if it was not sent.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_interim(exchange: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(exchange, false, |exchange| exchange.send_interim()) }
}
