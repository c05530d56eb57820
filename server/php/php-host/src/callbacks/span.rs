//! Spans of scripts. Called by `span.c` and `database_span.c`.

use super::{slice, with};
use crate::engine::structures::Str;
use outboard_ring::span::SpanCall;
use std::ffi::c_void;

/// Sends a span that has ended to the gateway; without a request there is no trace.
///
/// # Safety
/// `exchange` is NULL or valid for [`with`]; `texts` are readable for `count` elements, with their bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_span(
    exchange: *mut c_void,
    start_us: u64,
    end_us: u64,
    id: u32,
    parent: u32,
    has_failed: bool,
    texts: *const Str,
    count: usize,
) {
    if exchange.is_null() || count == 0 {
        return;
    }
    // SAFETY: this function's contract.
    let texts = unsafe { std::slice::from_raw_parts(texts, count) };
    // SAFETY: this function's contract.
    let texts = texts.iter().map(|text| unsafe { slice(text.ptr, text.len) });
    let mut buffer = Vec::new();
    let call = SpanCall::new((start_us, end_us), (id, parent), has_failed, texts, &mut buffer);
    // SAFETY: this function's contract.
    unsafe { with(exchange, (), |exchange| exchange.span(call)) }
}
