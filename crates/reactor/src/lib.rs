//! One thread, one epoll, tasks: the gateway's event loop.
//!
//! Called by the gateway (and whatever else waits on many sockets). It measures 15 % less CPU per
//! request than a general-purpose runtime (`docs/decisions/0002-own-event-loop.md`), because a
//! readiness event finds its task by index, without wakers, atomics or a scheduler between.
//!
//! Invariants: everything here belongs to the thread that called [`run`]; a task is polled only
//! by the loop; a stale token (closed descriptor, finished task) is recognised by its generation
//! and dropped. Futures of this crate may be spurious: whoever waits looks again.
//!
//! Foreign futures (TLS, HTTP/2, a thread's result) get a real [`std::task::Waker`].

#![forbid(unsafe_code)]

mod blocking;
mod budget;
mod event;
mod executor;
mod reactor;
mod signal;
mod source;
mod stream;
mod timer;

pub use blocking::blocking;
pub use budget::{is_spent, spend, without_budget};
pub use event::Event;
pub use executor::{Panicked, TaskId, contain, current_task};
pub use reactor::{
    MemorySource, now_ms, run, share_turn, spawn, wake, wake_all, watch_memory, yield_now,
};
pub use signal::{Signals, signals};
pub use source::{Interest, Source};
pub use stream::{Accepted, Listener, Peer, Stream};
pub use timer::{
    Elapsed, clear_deadline, deadline_ms, deadline_passed, set_deadline, sleep, with_deadline,
};
