//! Passes the text of a PHP backtrace from `sapi/request/backtrace.c` to the gateway.
//!
//! A running worker writes its own after a signal; the zygote reads one that waits ([`request`]),
//! and writes to the worker's ring memory on its behalf. Invariant: nothing here runs in a signal
//! handler.

use crate::engine;
use outboard_ring::channel::{BacktraceSink, WorkerChannel};
use outboard_ring::control::BACKTRACE_SIGNAL;
use outboard_ring::frame::Tag;
use std::cell::RefCell;
use std::ffi::c_char;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::catch_unwind;

#[derive(Default)]
struct Writer {
    text: Vec<u8>,
    sink: Option<BacktraceSink>,
    tag: Tag,
}

thread_local! {
    /// On the heap, because a rewind puts variables back.
    static WRITER: &'static RefCell<Writer> = Box::leak(Box::default());
}

fn with_writer<T>(work: impl FnOnce(&mut Writer) -> T) -> T {
    WRITER.with(|writer| work(&mut writer.borrow_mut()))
}

/// In the zygote: before its snapshot, which has the writer's address.
pub(crate) fn prepare() {
    WRITER.with(|_| ());
}

/// In a worker: sets the target of its own backtraces.
pub(crate) fn set_sink(sink: BacktraceSink) {
    with_writer(|writer| writer.sink = Some(sink));
}

/// In a worker: sets the request of the next backtrace.
pub(crate) fn set_request(tag: Tag) {
    with_writer(|writer| writer.tag = tag);
}

/// In the zygote: obtains the backtrace of the request that `pid` runs, whose memory is `memory` if the zygote
/// has it, and writes it to the `ring`.
///
/// `last` is the request for which the worker was last signalled: it is not signalled twice.
pub(crate) fn request(
    pid: i32,
    memory: Option<BorrowedFd<'_>>,
    ring: &OwnedFd,
    last: &mut Option<Tag>,
) {
    let Some(memory) = memory else { return send_signal(pid) };
    match engine::backtrace::subject_of(memory) {
        Ok(None) => {}
        Ok(Some(tag)) if is_running(pid) && *last != Some(tag) => {
            *last = Some(tag);
            send_signal(pid);
        }
        Ok(Some(tag)) => read_from_outside(pid, memory, ring, tag),
        Err(engine::backtrace::Unreadable) => send_signal(pid),
    }
}

/// Field 3 of proc_pid_stat(5).
pub(crate) fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R')))
}

fn send_signal(pid: i32) {
    // SAFETY: a plain system call for a child of this process.
    unsafe { libc::kill(pid, BACKTRACE_SIGNAL) };
}

fn read_from_outside(pid: i32, memory: BorrowedFd<'_>, ring: &OwnedFd, tag: Tag) {
    let text = of(pid, Some(memory), engine::backtrace::root());
    let still = matches!(engine::backtrace::subject_of(memory), Ok(Some(now)) if now == tag);
    // If the ring cannot be mapped, the worker exits anyway.
    if let (true, Ok(channel)) = (still, WorkerChannel::map(ring)) {
        channel.backtrace_sink().publish(&text, tag);
    }
}

/// The backtrace of another process of this program, whose pointer to the innermost frame is at
/// `root`.
pub(crate) fn of(pid: i32, memory: Option<BorrowedFd<'_>>, root: usize) -> Vec<u8> {
    engine::backtrace::write_from(pid, memory, root);
    with_writer(|writer| std::mem::take(&mut writer.text))
}

/// Appends to the text.
///
/// # Safety
/// `text` is valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_backtrace_write(text: *const c_char, len: usize) {
    // SAFETY: the caller's contract.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    // A panic only loses the backtrace.
    let _ = catch_unwind(|| {
        with_writer(|writer| writer.text.extend_from_slice(text));
    });
}

/// In a worker: publishes the text to the gateway.
#[unsafe(no_mangle)]
extern "C" fn outboard_rs_backtrace_publish() {
    let _ = catch_unwind(|| {
        with_writer(|writer| {
            if let Some(sink) = &writer.sink {
                sink.publish(&writer.text, writer.tag);
            }
            writer.text.clear();
        });
    });
}

/// In a worker with several requests: sets the request of the next text.
#[unsafe(no_mangle)]
extern "C" fn outboard_rs_backtrace_about(slot: u32, generation: u32) {
    let _ = catch_unwind(|| set_request(Tag { slot, generation }));
}
