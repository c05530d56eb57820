//! Calls of the C library that nothing but a thread can make while coroutines go on: name
//! resolution, the end of a pipe's child.
//!
//! Used by [`crate::events`]. Invariants: the thread touches neither PHP nor the ring; signals of
//! the process are not delivered to it; the caller's data stays until the call is done.

use outboard_ring::doorbell::{Awaited, Doorbell};
use std::ffi::c_void;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A function of `waiting_blocking_calls.c` and its data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockingCall {
    pub(crate) run: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

// SAFETY: `waiting_blocking_calls.c` hands the data to the thread alone until the errand is done, and waits for
// that however the wait ends.
unsafe impl Send for BlockingCall {}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Offload {
    finished: Arc<Mutex<Vec<u64>>>,
    running: usize,
    /// Rung by the threads; among what the worker waits for once there are any.
    bell: Option<Doorbell>,
}

impl Offload {
    /// Runs it in a thread; then `waiter` is among the finished, and the worker's wait ends. False
    /// when no thread can be had.
    pub(crate) fn begin(&mut self, waiter: u64, call: BlockingCall, awaited: &Awaited) -> bool {
        let Ok(bell) = self.bell_in(awaited) else { return false };
        let finished = self.finished.clone();
        let work = move || {
            let call = call;
            // SAFETY: by the contract of `BlockingCall`.
            unsafe { (call.run)(call.data) };
            finished.lock().unwrap_or_else(PoisonError::into_inner).push(waiter);
            bell.ring();
        };
        let spawned =
            without_signals(|| std::thread::Builder::new().stack_size(256 * 1024).spawn(work));
        self.running += usize::from(spawned.is_ok());
        spawned.is_ok()
    }

    fn bell_in(&mut self, awaited: &Awaited) -> io::Result<Doorbell> {
        let bell = match self.bell.take() {
            Some(bell) => bell,
            None => {
                let bell = Doorbell::new()?;
                awaited.add(&bell)?;
                bell
            }
        };
        self.bell.insert(bell).try_clone()
    }

    /// Whether any is on its way.
    pub(crate) fn is_busy(&self) -> bool {
        self.running > 0
    }

    /// Whose errands are done.
    pub(crate) fn take_finished(&mut self) -> Vec<u64> {
        if self.running == 0 {
            return Vec::new();
        }
        let finished =
            std::mem::take(&mut *self.finished.lock().unwrap_or_else(PoisonError::into_inner));
        self.running -= finished.len();
        finished
    }
}

/// A thread inherits the mask of the one that starts it (pthread_create(3)).
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: sets of this frame; the mask is put back before it returns.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}
