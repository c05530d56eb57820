//! [`Post`]: what other shards know of a shard, and what they ask of it.
//!
//! Invariants: what is known is never later than the truth; requests are bounded, since each is for a
//! connection that was counted.

use super::lock;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

/// No connection is idle.
pub(crate) const NEVER_MS: u64 = u64::MAX;
/// Further addresses wait for another attempt of their client.
const MOST_ADDRESSES: usize = 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Post {
    idle_since_ms: AtomicU64,
    inbox: Mutex<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    requests: Requests,
    waker: Option<Waker>,
}

/// What other shards have asked for.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// So many idle connections, those that have been idle longest, are to close.
    pub(crate) closings: u32,
    /// An idle connection of each of these addresses is to close.
    pub(crate) addresses: Vec<IpAddr>,
}

impl Default for Post {
    fn default() -> Self {
        Self { idle_since_ms: AtomicU64::new(NEVER_MS), inbox: Mutex::default() }
    }
}

impl Post {
    /// Not later than since when a connection of the shard is idle.
    pub(super) fn idle_since_ms(&self) -> u64 {
        self.idle_since_ms.load(Ordering::SeqCst)
    }

    /// Publishes since when a connection is idle.
    pub(crate) fn publish(&self, idle_since_ms: u64) {
        self.idle_since_ms.store(idle_since_ms, Ordering::SeqCst);
    }

    /// Asks for the closing of an idle connection.
    pub(crate) fn ask(&self) {
        self.request(|requests| requests.closings += 1);
    }

    /// Asks for the closing of an idle connection of this address.
    pub(super) fn ask_for(&self, address: IpAddr) {
        self.request(|requests| {
            if requests.addresses.len() < MOST_ADDRESSES {
                requests.addresses.push(address);
            }
        });
    }

    fn request(&self, add: impl FnOnce(&mut Requests)) {
        let waker = {
            let mut inbox = lock(&self.inbox);
            add(&mut inbox.requests);
            inbox.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// What was asked for; the next request wakes this task.
    pub(crate) fn take(&self, waker: &Waker) -> Requests {
        let mut inbox = lock(&self.inbox);
        inbox.waker = Some(waker.clone());
        std::mem::take(&mut inbox.requests)
    }
}
