//! Fetches and tasks. Called by `api/primitives.c`. If a function states no safety contract, it has that of [`with`].

use super::bytes;
use super::worker_script::with;
use crate::engine::structures::{RawFetch, RawFetchResult, Str};
use crate::exchange::Exchange;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, EntitiesCall, FetchCall, FetchOptions, RateCall};
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
    unsafe {
        let (call, body) = read_fetch(&*fetch);
        begin((events, exchange, waiter), Call::Fetch(call), body)
    }
}

/// Begins an operation with the result of a fetch.
///
/// # Safety
/// As [`with`]; `exchange` is NULL or that of a request.
unsafe fn begin(
    (events, exchange, waiter): (*mut c_void, *mut c_void, u64),
    call: Call<'_>,
    body: &[u8],
) -> u64 {
    // SAFETY: this function's contract.
    unsafe {
        let tag = exchange.cast::<Exchange>().as_ref().map_or(Tag::default(), Exchange::tag);
        with(events, |script| script.fetch(tag, waiter, call, body))
    }
}

/// The same, blocking the worker, in classic mode. False if it failed; the strings of `fetched` live until
/// the next call.
///
/// # Safety
/// `exchange` is valid for `callbacks::with`, `fetched` writable.
unsafe fn block(
    exchange: *mut c_void,
    call: Call<'_>,
    body: &[u8],
    fetched: *mut RawFetchResult,
) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        super::with(exchange, false, |exchange| {
            let Some(result) = exchange.call(call, body) else { return false };
            fetched.write(result.into());
            true
        })
    }
}

/// A batch for the entity store.
///
/// # Safety
/// As [`outboard_rs_fetch`]; the strings are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_entities(
    events: *mut c_void,
    exchange: *mut c_void,
    waiter: u64,
    namespace: Str,
    batch: Str,
) -> u64 {
    // SAFETY: this function's contract.
    unsafe {
        let (call, batch) = entities(namespace, batch);
        begin((events, exchange, waiter), call, batch)
    }
}

/// # Safety
/// As [`outboard_rs_blocking_fetch`]; the strings are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_blocking_entities(
    exchange: *mut c_void,
    namespace: Str,
    batch: Str,
    fetched: *mut RawFetchResult,
) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        let (call, batch) = entities(namespace, batch);
        block(exchange, call, batch, fetched)
    }
}

/// # Safety
/// The strings are readable for as long as the result is used.
unsafe fn entities<'a>(namespace: Str, batch: Str) -> (Call<'a>, &'a [u8]) {
    // SAFETY: this function's contract.
    let (namespace, batch) = unsafe { (bytes(namespace), bytes(batch)) };
    let batch_bytes = batch.len() as u32;
    (Call::Entities(EntitiesCall { namespace, batch_bytes }), batch)
}

/// Tokens of a rate limit.
///
/// # Safety
/// As [`outboard_rs_fetch`]; the strings are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_rate(
    events: *mut c_void,
    exchange: *mut c_void,
    waiter: u64,
    limit: Str,
    key: Str,
    tokens: u32,
    takes: bool,
) -> u64 {
    // SAFETY: this function's contract.
    unsafe {
        let call = RateCall { limit: bytes(limit), key: bytes(key), tokens, takes };
        begin((events, exchange, waiter), Call::Rate(call), b"")
    }
}

/// # Safety
/// As [`outboard_rs_blocking_fetch`]; the strings are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_blocking_rate(
    exchange: *mut c_void,
    limit: Str,
    key: Str,
    tokens: u32,
    takes: bool,
    fetched: *mut RawFetchResult,
) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        let call = RateCall { limit: bytes(limit), key: bytes(key), tokens, takes };
        block(exchange, Call::Rate(call), b"", fetched)
    }
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
    unsafe {
        let (call, body) = read_fetch(&*fetch);
        block(exchange, Call::Fetch(call), body, fetched)
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
    let (name, data) = unsafe { (bytes(name), bytes(data)) };
    let retries = u8::try_from(retries).ok();
    let data_bytes = data.len() as u32;
    let call = TaskCall { name, data_bytes, delay_ms, is_awaited, retries };
    // SAFETY: this function's contract.
    unsafe { begin((events, exchange, waiter), Call::Task(call), data) }
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
