//! The request body. Called by `input.c`.

use super::with;
use std::ffi::{c_char, c_void};

/// Fills the buffer; fewer than `len` bytes mean that the body has ended.
///
/// # Safety
/// As [`with`]; `buffer` is writable for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_read_body(
    exchange: *mut c_void,
    buffer: *mut c_char,
    len: usize,
) -> usize {
    if len == 0 {
        return 0;
    }
    // SAFETY: this function's contract; PHP's buffer may hold bytes that were never written.
    let target = unsafe { std::slice::from_raw_parts_mut(buffer.cast(), len) };
    // SAFETY: this function's contract.
    unsafe { with(exchange, 0, |exchange| exchange.read_body(target)) }
}
