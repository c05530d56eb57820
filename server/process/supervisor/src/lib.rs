//! Starts, sizes, monitors and ends PHP processes.
//!
//! Called by the gateway, which owns the event loop and the clock. Decisions are pure ([`plan`],
//! [`worker::life`], the parsers): times are arguments in monotonic milliseconds, and actions are
//! return values. Effects are thin ([`zygote`], [`worker`], and the readers of `/proc`).
//! Invariants: no call blocks for longer than a system call on a healthy kernel; nothing starts a
//! thread and no async runtime is linked, because a process that forks must have one thread.
//!
//! ```text
//!  zygote::Zygote ── control socket ──▶ outboard-php (the zygote) ──fork──▶ workers
//!  keeper::Keeper  ── control socket ──▶ outboard-php (the keeper) ──fork──▶ a program
//!  worker::WorkerProcess   one worker: its ring, doorbell, output and state
//!  plan::scale      how many workers           plan::backoff   when to retry
//!  plan::recycle    which workers to replace   plan::deadline  exceeded deadlines
//!  plan::placement  on which core workers run
//!  plan::restart    when a program runs again
//!  memory, cpu, thread_times, loopback   readers of /proc
//! ```

#![forbid(unsafe_code)]

mod cgroup;
pub mod cpu;
pub mod keeper;
pub mod loopback;
pub mod memory;
pub mod plan;
pub mod thread_times;
pub mod worker;
pub mod zygote;
