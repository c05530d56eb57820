//! Blocking calls of the C library that run in threads while coroutines continue: name resolution,
//! the end of a pipe's child.
//!
//! Used by [`crate::events`]. Invariants: a thread uses neither PHP nor the ring, and receives no
//! signals; the call's data lives until the call has ended.

use outboard_ring::doorbell::{Awaited, Doorbell};
use std::ffi::c_void;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A function of `waiting/blocking_calls.c` and its data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockingCall {
    pub(crate) run: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

// SAFETY: `waiting/blocking_calls.c` does not touch the data until the call has ended, and waits
// for that in any case.
unsafe impl Send for BlockingCall {}

#[derive(Debug, Default)]
pub(crate) struct Offload {
    finished: Arc<Mutex<Vec<u64>>>,
    running: usize,
    /// Rung by the threads; created with the first one.
    bell: Option<Doorbell>,
}

impl Offload {
    /// Runs the call in a thread, then ends the worker's wait and reports `waiter` as finished.
    /// False if no thread can be created.
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

    pub(crate) fn is_busy(&self) -> bool {
        self.running > 0
    }

    /// The waiters whose calls have ended.
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

/// A thread inherits the signal mask of its creator (pthread_create(3)).
pub(crate) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are local; the mask is restored before this returns.
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
