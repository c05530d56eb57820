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

mod background_drop;
mod blocking;
mod budget;
mod core_binding;
mod cpu;
pub mod directory_events;
mod disk;
mod event;
mod executor;
mod mailbox;
mod reactor;
mod share;
mod signal;
mod source;
mod sources;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod threads;
mod timer;
mod timers;
mod turns;

pub use background_drop::BackgroundDrop;
pub use blocking::blocking;
pub use budget::{is_spent, spend, without_budget};
pub use core_binding::{CoreBinding, unbound};
pub use cpu::{are_cpu_threads_busy, on_cpu_thread};
pub use disk::{on_disk_thread, on_lookup_thread};
pub use event::Event;
pub use executor::{Panicked, TaskId, contain, current_task};
pub use mailbox::{MailboxReceiver, MailboxSender, Reply, ReplySender, mailbox, reply};
pub use reactor::{
    MemorySource, activity, now_ms, run, share_turn, spawn, spawn_in_background, turns, wake,
    wake_all, watch_memory, yield_now,
};
pub use share::Share;
pub use signal::{Signals, signals};
pub use source::Source;
pub use sources::{Bell, Interest};
pub use stream::{Accepted, Listener, Peer, Stream};
pub use threads::Threads;
pub use timer::{
    Elapsed, clear_deadline, deadline_ms, deadline_passed, set_deadline, sleep, with_deadline,
};
pub use turns::Turns;
