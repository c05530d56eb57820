//! The event loop of the gateway: one thread, one epoll, tasks.
//!
//! Used by everything that waits on many sockets. It needs 15 % less CPU per request than a
//! general-purpose runtime (`docs/decisions/0002-own-event-loop.md`), because a readiness event
//! finds its task by index, without wakers, atomics or a scheduler.
//!
//! Invariants: everything belongs to the thread that called [`run`]; only the loop polls a task; a
//! stale token (closed descriptor, finished task) is detected by its generation and ignored.
//! Wake-ups may be spurious: a task checks its condition again.
//!
//! Futures of other crates (TLS, HTTP/2, the result of a thread) get a real [`std::task::Waker`].

#![forbid(unsafe_code)]

mod blocking;
mod budget;
mod event;
mod executor;
mod reactor;
mod signal;
mod source;
mod sources;
mod stream;
mod timer;
mod timers;

pub use blocking::blocking;
pub use budget::{is_spent, spend, without_budget};
pub use event::Event;
pub use executor::{Panicked, TaskId, contain, current_task};
pub use reactor::{
    MemorySource, now_ms, run, share_turn, spawn, wake, wake_all, watch_memory, yield_now,
};
pub use signal::{Signals, signals};
pub use source::Source;
pub use sources::Interest;
pub use stream::{Accepted, Listener, Peer, Stream};
pub use timer::{
    Elapsed, clear_deadline, deadline_ms, deadline_passed, set_deadline, sleep, with_deadline,
};
