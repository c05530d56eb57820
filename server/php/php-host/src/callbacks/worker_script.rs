//! The life of a worker script and its next event. Called by `worker/loop.c` and `worker/worker_script.c`. If a
//! function states no safety contract, it has that of [`with`].

use crate::engine::structures::{RawEvent, RawResult};
use crate::events::{Event, RequestSlot};
use crate::exchange::Exchange;
use crate::exit;
use crate::worker_script::RunningScript;
use std::ffi::c_void;
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
/// As [`with`].
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_is_idle(events: *mut c_void) -> bool {
    // SAFETY: this function's contract.
    unsafe { with(events, |script| script.is_idle()) }
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
