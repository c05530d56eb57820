//! Lines for the error log. Called by `output.c` and `script.c`.

use super::{slice, with};
use std::ffi::{c_char, c_void};

/// # Safety
/// As [`with`]; `text` is valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_log(
    exchange: *mut c_void,
    severity: i32,
    text: *const c_char,
    len: usize,
) {
    // syslog(3) severities; a facility may be added above the lowest three bits.
    let severity = (severity & 7) as u8;
    // SAFETY: this function's contract.
    unsafe { with(exchange, (), |exchange| exchange.log(severity, slice(text, len))) }
}
