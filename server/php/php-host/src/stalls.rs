//! Stalls: system calls that block a worker which has coroutines, so that its other requests wait.
//!
//! Started by [`crate::worker_script`] when the script first calls for a request. A thread looks at the worker's own
//! every 50 ms, unless that waits for events, and reports the calls in which it has sat for 100 ms: once each, to the
//! error log. Invariants: this thread uses neither PHP nor the ring, and reads memory by system calls only, since all of
//! it may change meanwhile; a worker that computes is not reported; one that is idle is not woken.

mod blocked_call;

use crate::{backtrace, engine, offload};
use blocked_call::BlockedCall;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(50);
/// How long a call may block.
const PATIENCE: Duration = Duration::from_millis(100);
/// After so many looks at an idle worker, the watcher sleeps until that has an event.
const LOOKS_AT_IDLE: u32 = 20;
/// Reports of a worker, at most.
const REPORTS_MAX: usize = 64;

/// Whether the worker waits for events, or has ended.
static IS_IDLE: AtomicBool = AtomicBool::new(false);
static IS_PARKED: AtomicBool = AtomicBool::new(false);
static WATCHER: OnceLock<Thread> = OnceLock::new();

/// Runs `sleep`, in which the worker waits for events.
pub(crate) fn idle<T>(sleep: impl FnOnce() -> T) -> T {
    IS_IDLE.store(true, Ordering::SeqCst);
    let result = sleep();
    IS_IDLE.store(false, Ordering::SeqCst);
    if IS_PARKED.load(Ordering::SeqCst)
        && let Some(watcher) = WATCHER.get()
    {
        watcher.unpark();
    }
    result
}

/// The script has ended: whatever blocks now, no request waits for it.
pub(crate) fn end() {
    IS_IDLE.store(true, Ordering::SeqCst);
}

/// What the watcher needs and the script must not open.
#[derive(Debug)]
pub(crate) struct Stalls {
    /// `/proc/PID/task/TID/syscall` of the worker's thread.
    syscall: File,
    clock: libc::clockid_t,
}

impl Stalls {
    /// Before any code of the script runs, in the thread that will run it.
    pub(crate) fn new() -> io::Result<Self> {
        let mut clock = 0;
        // SAFETY: writes the clock of this thread, which lives as long as the process.
        let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        Ok(Self { syscall: blocked_call::open()?, clock })
    }

    /// Begins to watch.
    pub(crate) fn watch(self) -> io::Result<()> {
        let spawned = offload::without_signals(|| {
            thread::Builder::new().stack_size(256 * 1024).spawn(move || self.run())
        })?;
        // Only the first thread of a process calls this, once.
        let _ = WATCHER.set(spawned.thread().clone());
        Ok(())
    }

    fn run(self) {
        let mut reported = BTreeSet::new();
        let mut sight: Option<(Duration, Instant)> = None;
        let mut idle_looks = 0;
        while reported.len() < REPORTS_MAX {
            thread::sleep(INTERVAL);
            if IS_IDLE.load(Ordering::SeqCst) {
                sight = None;
                idle_looks += 1;
                if idle_looks >= LOOKS_AT_IDLE {
                    park();
                    idle_looks = 0;
                }
                continue;
            }
            idle_looks = 0;
            // A thread whose time has not changed has not run.
            let time = self.time_used();
            match sight {
                Some((before, since)) if before == time => {
                    if since.elapsed() >= PATIENCE
                        && let Some(call) = BlockedCall::read(&self.syscall)
                        && self.time_used() == time
                    {
                        report(&call, &mut reported);
                    }
                }
                _ => sight = Some((time, Instant::now())),
            }
        }
    }

    fn time_used(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes the structure; the clock is of a thread of this process.
        unsafe { libc::clock_gettime(self.clock, &raw mut time) };
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }
}

/// Sleeps until the worker has an event.
fn park() {
    IS_PARKED.store(true, Ordering::SeqCst);
    while IS_IDLE.load(Ordering::SeqCst) {
        thread::park();
    }
    IS_PARKED.store(false, Ordering::SeqCst);
}

fn report(call: &BlockedCall, reported: &mut BTreeSet<String>) {
    let stack = backtrace::of(std::process::id().cast_signed(), None, engine::backtrace::root());
    let stack = String::from_utf8_lossy(&stack);
    let line = stack.lines().next().unwrap_or_default();
    let text = format!(
        "outboard-php: the worker and all its requests were blocked for {} ms by {call}; {line}\n",
        PATIENCE.as_millis()
    );
    if reported.insert(text.clone()) {
        log(&text);
        if reported.len() == REPORTS_MAX {
            log("outboard-php: further calls that block this worker are not reported\n");
        }
    }
}

/// Without the lock of stderr, which the worker may hold.
fn log(line: &str) {
    // A log that cannot be written has nowhere to report it.
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
}
