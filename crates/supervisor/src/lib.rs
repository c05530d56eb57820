//! Starts, sizes, watches and ends PHP processes.
//!
//! Called by the gateway's I/O thread, which owns the event loop and the clock. Decisions are pure
//! ([`plan`], [`worker::life`], the parsers): times come in as monotonic milliseconds, what to do
//! goes out as values. Effects are thin ([`zygote`], [`worker`], and the readers of `/proc`).
//! Invariants: nothing here blocks longer than a system call on a healthy kernel takes, nothing
//! starts a thread, and no async runtime is ever linked: a process that forks has one thread.
//!
//! ```text
//!  zygote::Zygote ── control socket ──▶ outboard-php (the zygote) ──fork──▶ workers
//!  worker::WorkerProcess   one worker: its ring, doorbell, output, and place in life
//!  plan::scale      how many workers       plan::backoff   when to try again
//!  plan::recycle    who is to be renewed   plan::deadline  who has had too long
//!  memory, cpu, loopback   what /proc knows
//! ```

#![forbid(unsafe_code)]

mod cgroup;
pub mod cpu;
pub mod loopback;
pub mod memory;
pub mod plan;
pub mod worker;
pub mod zygote;
