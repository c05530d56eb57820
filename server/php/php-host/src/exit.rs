//! How a worker's process ends.
//!
//! Called by everything that runs in a worker. Invariant: no destructor and no exit handler of the
//! zygote runs in it.

use crate::engine;
use outboard_ring::spsc::Corrupt;

/// Exit code after a violation of the ring's protocol.
pub(crate) const CODE_CORRUPT: i32 = 3;
/// Exit code if the ring could not be set up.
pub(crate) const CODE_SETUP: i32 = 4;

/// Ends the process at once: no destructors, no exit handlers of the zygote, and no announcement of a death
/// (`sapi/process/crash.c`).
pub(crate) fn leave(code: i32) -> ! {
    loop {
        // SAFETY: a plain system call, which does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

/// Why the worker stops.
pub(crate) enum ExitReason {
    /// On the gateway's order.
    Stopped,
    /// A fork has handled its one request.
    ForkDone,
    /// The engine's state is damaged.
    Tainted,
    /// The worker script never called for a request.
    NeverReady,
}

/// Exits with the code for `served`.
pub(crate) fn end(number: u64, served: Result<ExitReason, Corrupt>) -> ! {
    match served {
        Ok(ExitReason::Stopped) => {
            engine::stop();
            leave(0)
        }
        Ok(ExitReason::ForkDone) => leave(0),
        Ok(ExitReason::Tainted) => leave(0),
        Ok(ExitReason::NeverReady) => {
            eprintln!("the worker script ended without a call for a request");
            leave(CODE_SETUP)
        }
        Err(error) => {
            eprintln!("outboard-php: worker {number} exits: {error}");
            leave(CODE_CORRUPT)
        }
    }
}
