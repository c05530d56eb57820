//! The calls of worker mode: events, waits, timers, fetches. Called by `loop.c`, `coroutine.c`,
//! `waiting/`, `primitives.c` and `worker_script.c`. If a function states no safety
//! contract, it has that of [`with`].

use super::slice;
use crate::engine::structures::{RawEvent, RawFetch, RawFetchResult, RawResult, Str};
use crate::events::{Event, RequestSlot};
use crate::exchange::Exchange;
use crate::exit;
use crate::offload::BlockingCall;
use crate::poller::WaitError;
use crate::worker_script::RunningScript;
use outboard_ring::channel::WaitCall;
use outboard_ring::control::RequestRead;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, FetchCall, FetchOptions};
use outboard_ring::task::TaskCall;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// Runs `work` on the running script. After a panic, which is our bug, the process exits, and the
/// gateway responds to its requests with 502.
///
/// # Safety
/// `events` is the pointer that `engine::worker_script::run` received, and that call has not
/// returned.
pub(super) unsafe fn with<T>(events: *mut c_void, work: impl FnOnce(&mut RunningScript) -> T) -> T {
    // SAFETY: the caller's contract; callbacks do not nest, so this is the only reference.
    let script = unsafe { &mut *events.cast::<RunningScript>() };
    catch_unwind(AssertUnwindSafe(|| work(script)))
        .unwrap_or_else(|_| exit::leave(exit::CODE_CORRUPT))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_ready(events: *mut c_void) {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.ready()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_forking(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.is_forking()) }
}

/// # Safety
/// As [`with`]. Returns in the worker, or in each fork of the zygote.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_snapshot(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.snapshot()) }
}

/// # Safety
/// As [`with`]; both texts are readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_request_read(
    events: *mut c_void,
    name: Str,
    file: Str,
    line: u32,
) {
    // SAFETY: this function's contract.
    let (name, file) = unsafe { (text(name), text(file)) };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.request_read(RequestRead { name, file, line })) }
}

/// # Safety
/// As [`with`]; `why` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_refuse_snapshot(
    events: *mut c_void,
    why: *const c_char,
    len: usize,
) {
    // SAFETY: this function's contract.
    let why = String::from_utf8_lossy(unsafe { slice(why, len) }).into_owned();
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.refuse_snapshot(why)) }
}

/// Zeroed memory that is not rewound, and is never freed; NULL if workers are not rewound.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_rewind_memory(events: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: this function's contract.
    if !unsafe { with(events, |script| script.takes_snapshot()) } {
        return std::ptr::null_mut();
    }
    Vec::leak(vec![0_u128; bytes.div_ceil(size_of::<u128>())]).as_mut_ptr().cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_may_rewind(events: *mut c_void, is_damaged: bool) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.may_rewind(is_damaged)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_rewound(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.is_rewound()) }
}

/// # Safety
/// As [`with`]; the process has one thread, which runs on a stack of [`outboard_rs_rewind_memory`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_rewind(events: *mut c_void, stack_pointer: *const c_void) {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.rewind(stack_pointer.addr())) }
}

/// # Safety
/// As [`with`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_idle(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.is_idle()) }
}

/// # Safety
/// As [`with`]; `description` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_describe(
    events: *mut c_void,
    description: *const c_char,
    len: usize,
) {
    // SAFETY: this function's contract.
    let description = unsafe { slice(description, len) };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.describe(description)) }
}

/// # Safety
/// As [`with`]. Returns true in each fork, and false in the zygote when it is to leave.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_fork_workers(events: *mut c_void) -> i32 {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.fork_workers()) }
}

/// # Safety
/// As [`with`]; `title` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_set_title(
    events: *mut c_void,
    title: *const c_char,
    len: usize,
) -> bool {
    // SAFETY: this function's contract.
    let title = String::from_utf8_lossy(unsafe { slice(title, len) });
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.set_title(&title)) }
}

/// # Safety
/// As [`with`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_renew(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, RunningScript::renew) }
}

/// # Safety
/// As [`with`]; `event` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_next(
    events: *mut c_void,
    may_start: bool,
    may_block: bool,
    event: *mut RawEvent,
) {
    // SAFETY: this function's contract.
    let next = unsafe { with(events, |script| script.next(may_start, may_block)) };
    // SAFETY: a slot does not move until its `done`.
    let raw = unsafe { raw_event(next) };
    // SAFETY: this function's contract.
    unsafe { event.write(raw) };
}

/// # Safety
/// A slot in `event` is in use.
unsafe fn raw_event(event: Event) -> RawEvent {
    let empty = RawEvent {
        kind: 0,
        slot: 0,
        generation: 0,
        id: 0,
        exchange: std::ptr::null_mut(),
        request: std::ptr::null(),
    };
    match event {
        Event::Nothing => empty,
        // SAFETY: the caller's contract.
        Event::Request(slot) => unsafe { raw_slot(1, slot) },
        Event::Wake(id) => RawEvent { kind: 2, id, ..empty },
        Event::Timer(id) => RawEvent { kind: 3, id, ..empty },
        // SAFETY: the caller's contract.
        Event::Cancel(slot) => unsafe { raw_slot(4, slot) },
        Event::Stop => RawEvent { kind: 5, ..empty },
        Event::Stream => RawEvent { kind: 6, ..empty },
    }
}

/// # Safety
/// `slot` is in use.
unsafe fn raw_slot(kind: i32, slot: NonNull<RequestSlot>) -> RawEvent {
    let slot = slot.as_ptr();
    // SAFETY: the caller's contract; the pointers are C's until `done`.
    let (exchange, request) = unsafe { (&raw mut (*slot).exchange, &raw const (*slot).request) };
    // SAFETY: as above; no reference outlives the line.
    let tag = unsafe { (*exchange).tag() };
    let (slot, generation) = (tag.slot, tag.generation);
    RawEvent { kind, slot, generation, id: 0, exchange: exchange.cast(), request }
}

/// # Safety
/// As [`with`]; `exchange` came with an event and is not done; `result` is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_done(
    events: *mut c_void,
    exchange: *mut c_void,
    result: *const RawResult,
) {
    // SAFETY: this function's contract.
    let (tag, result) = unsafe { ((*exchange.cast::<Exchange>()).tag(), (*result).into()) };
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.done(tag, result)) }
}

/// 0, or 1 if the wait is impossible; if another waiter is the reason, `other` is set to it.
///
/// # Safety
/// As [`with`]; `fds` is valid for `count` elements, `other` writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_wait(
    events: *mut c_void,
    waiter: u64,
    fds: *const libc::pollfd,
    count: usize,
    timeout_us: i64,
    other: *mut u64,
) -> c_int {
    let fds = if count == 0 {
        &[]
    } else {
        // SAFETY: this function's contract.
        unsafe { std::slice::from_raw_parts(fds, count) }
    };
    let wanted = fds.iter().map(|fd| (fd.fd, u32::from(fd.events as u16)));
    let timeout_us = u64::try_from(timeout_us).ok();
    // SAFETY: this function's contract.
    let begun =
        unsafe { with(events, |script| script.events().poller.wait(waiter, wanted, timeout_us)) };
    match begun {
        Ok(()) => 0,
        Err(WaitError::Unwatchable) => 1,
        Err(WaitError::InUse(by)) => {
            // SAFETY: this function's contract.
            unsafe { other.write(by) };
            1
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_unwait(events: *mut c_void, waiter: u64) {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.events().poller.cancel(waiter)) }
}

/// Shuts down the sockets for which this coroutine waits, so that the library that reads them sees
/// an end and returns.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_cancel_wait(events: *mut c_void, waiter: u64) {
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| {
            for fd in script.events().poller.descriptors(waiter) {
                // SAFETY: fails for other descriptors.
                libc::shutdown(*fd, libc::SHUT_RDWR);
            }
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_reader(events: *mut c_void, fd: c_int) -> u64 {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.events().poller.reader(fd)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_timer_set(events: *mut c_void, id: u64, delay_us: i64) {
    let delay_us = u64::try_from(delay_us).unwrap_or(0);
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.events().poller.set_timer(id, delay_us)) }
}

/// Counts a wait in the call with this number; a negative time means that the worker was not
/// blocked.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_count_wait(events: *mut c_void, call: c_int, blocked_us: i64) {
    let call = usize::try_from(call).ok().and_then(|at| WaitCall::ALL.get(at));
    let blocked_us = u64::try_from(blocked_us).ok();
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| {
            if let Some(call) = call {
                script.count_wait(*call, blocked_us);
            }
        });
    }
}

/// # Safety
/// As [`with`]; `run` may be called with `data` in another thread until the waiter is woken.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_offload(
    events: *mut c_void,
    waiter: u64,
    run: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        with(events, |script| {
            let events = script.events();
            let link = events.link.clone();
            events.offload.begin(waiter, BlockingCall { run, data }, link.borrow().bell())
        })
    }
}

/// # Safety
/// The bytes are readable.
unsafe fn text(text: Str) -> String {
    // SAFETY: the caller's contract.
    String::from_utf8_lossy(unsafe { bytes(text) }).into_owned()
}

/// # Safety
/// The bytes outlive the slice.
unsafe fn bytes<'a>(text: Str) -> &'a [u8] {
    // SAFETY: the caller's contract.
    unsafe { slice(text.ptr, text.len) }
}

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
