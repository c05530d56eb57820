//! Where `sapi/backtrace.c` puts the text of a PHP backtrace.
//!
//! [`aim`] and [`about`] are called by the worker, the rest from the signal handler or the
//! engine's interrupt hook. Invariant: what the handler calls touches atomics and shared memory
//! only.

use outboard_ring::channel::BacktraceSink;
use outboard_ring::frame::Tag;
use std::ffi::c_char;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Leaked at the worker's start, so that the handler may use it at any time.
static SINK: AtomicPtr<BacktraceSink> = AtomicPtr::new(std::ptr::null_mut());
static SLOT: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Length of the text so far.
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Sets where backtraces go, once in a worker's life.
pub(crate) fn aim(sink: BacktraceSink) {
    SINK.store(Box::into_raw(Box::new(sink)), Ordering::Release);
}

/// Sets which request they are about.
pub(crate) fn about(tag: Tag) {
    SLOT.store(tag.slot, Ordering::Relaxed);
    GENERATION.store(tag.generation, Ordering::Relaxed);
}

fn sink() -> Option<&'static BacktraceSink> {
    let sink = SINK.load(Ordering::Acquire);
    // SAFETY: NULL, or leaked by `aim` and never written again.
    unsafe { sink.as_ref() }
}

/// Appends to the text.
///
/// # Safety
/// `text` is valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_backtrace_write(text: *const c_char, len: usize) {
    // SAFETY: the caller's contract.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let at = LEN.fetch_add(len, Ordering::Relaxed);
    if let Some(sink) = sink() {
        sink.write(at, text);
    }
}

/// Shows the text to the gateway; the next write begins a new one.
#[unsafe(no_mangle)]
extern "C" fn outboard_rs_backtrace_publish() {
    let len = LEN.swap(0, Ordering::Relaxed);
    let tag =
        Tag { slot: SLOT.load(Ordering::Relaxed), generation: GENERATION.load(Ordering::Relaxed) };
    if let Some(sink) = sink() {
        sink.publish(len, tag);
    }
}
