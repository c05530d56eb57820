//! Counters of what PHP waits for, in shared memory.
//!
//! Written by the worker, read by the gateway for `outboard status`. No decision depends on these numbers.
//! Invariant: each call has a counter of its own, at the same place in both programs.

use crate::sync::{AtomicU64, Ordering};

const _: () = {
    let mut index = 0;
    while index < WaitCall::ALL.len() {
        assert!(WaitCall::ALL[index] as usize == index, "a call is the index of its counter");
        index += 1;
    }
};
#[cfg(not(loom))]
const _: () =
    assert!(size_of::<WaitCounter>() == 24, "another layout is another version of the mapping");

/// A function of the C library in which PHP waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum WaitCall {
    /// `poll(2)` and `ppoll(2)`.
    Poll,
    /// `select(2)`.
    Select,
    /// `sleep(3)`, `usleep(3)`, `nanosleep(2)`, `clock_nanosleep(2)`.
    Sleep,
    /// `connect(2)` on a blocking socket.
    Connect,
    /// `recv(2)` and `read(2)` on a blocking socket or pipe.
    Receive,
    /// `send(2)` and `write(2)` on a blocking socket or pipe.
    Send,
    /// `waitpid(2)`: `proc_close()`, `exec()`.
    Child,
    /// `getaddrinfo(3)`, `gethostbyname(3)`.
    Resolve,
    /// `flock(2)`: sessions, `flock()`.
    Lock,
    /// An operation of the gateway: `Outboard\fetch()`.
    Gateway,
    /// A client that reads more slowly than the script writes.
    Client,
    /// A rewind, which puts the worker back to what it was before the request.
    Rewind,
}

impl WaitCall {
    /// All values, in order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Poll,
        Self::Select,
        Self::Sleep,
        Self::Connect,
        Self::Receive,
        Self::Send,
        Self::Child,
        Self::Resolve,
        Self::Lock,
        Self::Gateway,
        Self::Client,
        Self::Rewind,
    ];

    /// The name in `outboard status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Select => "select",
            Self::Sleep => "sleep",
            Self::Connect => "connect",
            Self::Receive => "receive",
            Self::Send => "send",
            Self::Child => "child",
            Self::Resolve => "resolve",
            Self::Lock => "flock",
            Self::Gateway => "gateway",
            Self::Client => "client",
            Self::Rewind => "rewind",
        }
    }
}

/// How often a worker waited in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Waits of a coroutine, during which the worker did other work.
    pub suspended: u64,
    /// Waits that blocked the whole worker.
    pub blocked: u64,
    /// The time of the latter, in µs.
    pub blocked_us: u64,
}

/// The counter of one call, in shared memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct WaitCounter {
    suspended: AtomicU64,
    blocked: AtomicU64,
    blocked_us: AtomicU64,
}

impl WaitCounter {
    /// The values, which the worker can set to anything.
    pub(crate) fn read(&self) -> Waits {
        Waits {
            suspended: self.suspended.load(Ordering::Relaxed),
            blocked: self.blocked.load(Ordering::Relaxed),
            blocked_us: self.blocked_us.load(Ordering::Relaxed),
        }
    }

    /// Counts a wait during which the worker did other work.
    pub(crate) fn count_suspended(&self) {
        self.suspended.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a wait that blocked the whole worker.
    pub(crate) fn count_blocked(&self, us: u64) {
        self.blocked.fetch_add(1, Ordering::Relaxed);
        self.blocked_us.fetch_add(us, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_call_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = WaitCall::ALL.iter().map(|call| call.name()).collect();
        assert_eq!(names.len(), WaitCall::ALL.len());
        let is_word = |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(names.iter().all(is_word), "they are keys of JSON: {names:?}");
    }
}
