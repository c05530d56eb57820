//! The functions that the shim calls during a request: `outboard_rs_…`, which `build/boundary.rs` declares in C.
//!
//! Invariants: none calls the engine; each goes through [`with`], so no panic enters C. If a
//! function states no safety contract, it has that of [`with`].

mod body;
mod boot_files;
mod connections;
mod denied_files;
mod fetch;
mod gateway_calls;
mod head;
mod log;
mod output;
mod program;
mod snapshot;
mod span;
mod streams;
mod task;
mod waits;
mod warm_caches;
mod worker_script;

use crate::engine::structures::Str;
use crate::exchange::Exchange;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work` on the request's exchange. After a panic, which is our bug, the shim gets
/// `fallback`, as for a disconnected client, and the worker exits after the request.
///
/// # Safety
/// `exchange` is the pointer that `engine::request::run` received, and that call has not returned.
unsafe fn with<T>(exchange: *mut c_void, fallback: T, work: impl FnOnce(&mut Exchange) -> T) -> T {
    // SAFETY: the caller's contract; callbacks do not nest, so this is the only reference.
    let exchange = unsafe { &mut *exchange.cast::<Exchange>() };
    catch_unwind(AssertUnwindSafe(|| work(exchange))).unwrap_or_else(|_| {
        exchange.record_panic();
        fallback
    })
}

/// # Safety
/// `bytes` is valid for `len` bytes for as long as the slice is used.
pub(crate) unsafe fn slice<'a>(bytes: *const std::ffi::c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts(bytes.cast(), len) }
}

/// # Safety
/// The bytes outlive the slice.
pub(crate) unsafe fn bytes<'a>(text: Str) -> &'a [u8] {
    // SAFETY: the caller's contract.
    unsafe { slice(text.ptr, text.len) }
}
