//! What coroutines wait for: descriptors, times, calls in other threads.
//!
//! Called by `waiting/`, `worker/loop.c`, programs and `api/primitives.c`. If a function states no safety
//! contract, it has that of [`with`].

use super::worker_script::with;
use crate::offload::BlockingCall;
use crate::poller::WaitError;
use outboard_ring::channel::WaitCall;
use std::ffi::{c_int, c_void};

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
    is_interruptible: bool,
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
    let begun = unsafe {
        with(events, |script| {
            script.events().poller.wait(waiter, wanted, timeout_us, is_interruptible)
        })
    };
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
