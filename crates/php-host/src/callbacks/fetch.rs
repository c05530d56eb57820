//! Fetches and tasks. Called by `api/primitives.c`. If a function states no safety contract, it has that of [`with`].

use super::bytes;
use super::worker_script::with;
use crate::engine::structures::{RawFetch, RawFetchResult, Str};
use crate::exchange::Exchange;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, FetchCall, FetchOptions};
use outboard_ring::task::TaskCall;
use std::ffi::{c_int, c_void};

/// # Safety
/// As [`with`]; `exchange` is NULL or that of a request; `fetch` is readable with all its strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_fetch(
    events: *mut c_void,
    exchange: *mut c_void,
    waiter: u64,
    fetch: *const RawFetch,
) -> u64 {
    // SAFETY: this function's contract.
    let (raw, tag) = unsafe {
        let tag = exchange.cast::<Exchange>().as_ref().map_or(Tag::default(), Exchange::tag);
        (&*fetch, tag)
    };
    // SAFETY: this function's contract.
    let (call, body) = unsafe { read_fetch(raw) };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.fetch(tag, waiter, Call::Fetch(call), body)) }
}

/// # Safety
/// The strings are readable for as long as the result is used.
unsafe fn read_fetch(raw: &RawFetch) -> (FetchCall<'_>, &[u8]) {
    // SAFETY: this function's contract.
    let (method, url, headers, body) =
        unsafe { (bytes(raw.method), bytes(raw.url), bytes(raw.headers), bytes(raw.body)) };
    let call = FetchCall {
        url,
        method,
        headers,
        body_bytes: body.len() as u32,
        connect_timeout_ms: raw.connect_timeout_ms,
        timeout_ms: raw.timeout_ms,
        max_body_bytes: raw.max_body_bytes,
        max_redirects: raw.max_redirects,
        retries: raw.retries,
        options: FetchOptions { verify: raw.verify, decompress: raw.decompress, http2: raw.http2 },
    };
    (call, body)
}

/// A fetch that blocks the worker, in classic mode. False if it failed; the strings of `fetched`
/// live until the next call.
///
/// # Safety
/// `exchange` is valid for `callbacks::with`; `fetch` is readable with all its strings, `fetched`
/// writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_blocking_fetch(
    exchange: *mut c_void,
    fetch: *const RawFetch,
    fetched: *mut RawFetchResult,
) -> bool {
    // SAFETY: this function's contract.
    let (call, body) = unsafe { read_fetch(&*fetch) };
    // SAFETY: this function's contract.
    unsafe {
        super::with(exchange, false, |exchange| {
            let Some(result) = exchange.call(Call::Fetch(call), body) else { return false };
            fetched.write(result.into());
            true
        })
    }
}

/// Begins a task; its result is that of a fetch. Negative `retries` mean the configured number.
///
/// # Safety
/// As [`outboard_rs_fetch`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_task(
    events: *mut c_void,
    exchange: *mut c_void,
    waiter: u64,
    name: Str,
    data: Str,
    delay_ms: u64,
    retries: c_int,
    is_awaited: bool,
) -> u64 {
    // SAFETY: this function's contract.
    let (tag, name, data) = unsafe {
        let tag = exchange.cast::<Exchange>().as_ref().map_or(Tag::default(), Exchange::tag);
        (tag, bytes(name), bytes(data))
    };
    let retries = u8::try_from(retries).ok();
    let data_bytes = data.len() as u32;
    let call = TaskCall { name, data_bytes, delay_ms, is_awaited, retries };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.fetch(tag, waiter, Call::Task(call), data)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_fetch_awaited(events: *mut c_void, operation: u64, waiter: u64) {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.events().fetches.await_by(operation, waiter)) }
}

/// False until the fetch is complete. The strings live until [`outboard_rs_fetch_free`].
///
/// # Safety
/// As [`with`]; `fetched` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_fetch_result(
    events: *mut c_void,
    operation: u64,
    fetched: *mut RawFetchResult,
) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| {
            let Some(result) = script.events().fetches.result(operation) else { return false };
            fetched.write(result.into());
            true
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_fetch_free(events: *mut c_void, operation: u64) {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.free_fetch(operation)) }
}
