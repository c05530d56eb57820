//! [`Census`]: the connections and streams of all shards.
//!
//! One per process. Each shard's [`crate::connections::Connections`] count here what they open and close,
//! and find the shard whose connection has been idle longest. Invariants: a request touches nothing that
//! another shard writes; who waits for room waits for a wake-up, which comes from any shard.
//!
//! A shard publishes since when its longest idle connection is idle, but not when that changes: what is
//! published may be earlier than the truth, and never later. So the shard with the earliest published time
//! is asked to close a connection; it publishes the truth, and passes the request on if another shard's
//! time is earlier now.

mod addresses;
mod listener_counts;
mod post;

pub(crate) use addresses::Address;
use addresses::Addresses;
pub use listener_counts::ListenerLimits;
pub(crate) use listener_counts::{ListenerCounts, Place};
pub(crate) use post::{NEVER_MS, Post};

use outboard_buffer::Quota;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// A shard takes the right to so many streams at once, at most.
const STREAMS_IN_ADVANCE: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct Census {
    /// More connections would leave too few descriptors for what requests need.
    max: u32,
    connections: AtomicU32,
    /// Connections that were asked to close.
    closing: AtomicU32,
    streams: Arc<Quota>,
    addresses: Addresses,
    listeners: Arc<ListenerCounts>,
    waiting_for_room: Mutex<Vec<Waker>>,
    /// Whether anything waits; written while the list is locked.
    is_room_awaited: AtomicBool,
    posts: Box<[Post]>,
    joined: AtomicUsize,
}

impl Census {
    /// For so many shards of a process with this limit of descriptors: a connection needs one, and often
    /// another for its request.
    pub(crate) fn new(shards: usize, descriptors: Option<u64>) -> Arc<Self> {
        let max = descriptors.map_or(u64::from(u32::MAX), |descriptors| descriptors / 2);
        Arc::new(Self {
            max: u32::try_from(max).unwrap_or(u32::MAX).max(1),
            connections: AtomicU32::new(0),
            closing: AtomicU32::new(0),
            streams: Quota::new(shards, STREAMS_IN_ADVANCE),
            addresses: Addresses::new(shards),
            listeners: Arc::default(),
            waiting_for_room: Mutex::default(),
            is_room_awaited: AtomicBool::new(false),
            posts: (0..shards).map(|_| Post::default()).collect(),
            joined: AtomicUsize::new(0),
        })
    }

    /// Counts a shard; its index.
    ///
    /// # Panics
    /// There are more shards than the census is for.
    pub(crate) fn join(&self) -> usize {
        let index = self.joined.fetch_add(1, Ordering::Relaxed);
        assert!(index < self.posts.len(), "the census is for {} shards", self.posts.len());
        index
    }

    /// The maximum number of connections that the descriptors allow.
    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Whether there are several shards.
    pub(crate) fn has_others(&self) -> bool {
        self.posts.len() > 1
    }

    /// Open connections.
    pub(crate) fn connections(&self) -> u32 {
        self.connections.load(Ordering::SeqCst)
    }

    /// Connections that are asked to close.
    pub(crate) fn closing(&self) -> u32 {
        self.closing.load(Ordering::SeqCst)
    }

    /// The right to streams.
    pub(crate) fn streams(&self) -> &Arc<Quota> {
        &self.streams
    }

    /// The connections of listeners with limits of their own.
    pub(crate) fn listeners(&self) -> &Arc<ListenerCounts> {
        &self.listeners
    }

    /// Counts a connection that opens; the number of open ones.
    pub(crate) fn opened(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Counts a connection that has closed.
    pub(crate) fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::SeqCst);
        self.wake_for_room();
    }

    /// Counts a connection that is asked to close.
    pub(crate) fn asked_to_close(&self) {
        self.closing.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts one less: it has closed, or it does not have to.
    pub(crate) fn asked_no_more(&self) {
        self.closing.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes this task when there may be room, or when a shard without idle connections has one. The caller
    /// looks again afterwards whether there is room.
    pub(crate) fn await_room(&self, waker: &Waker) {
        let mut waiting = lock(&self.waiting_for_room);
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        self.is_room_awaited.store(true, Ordering::SeqCst);
    }

    /// Wakes what waits for room.
    pub(crate) fn wake_for_room(&self) {
        if !self.is_room_awaited.load(Ordering::SeqCst) {
            return;
        }
        let waiting = {
            let mut waiting = lock(&self.waiting_for_room);
            self.is_room_awaited.store(false, Ordering::SeqCst);
            std::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// What other shards know of a shard, and ask of it.
    pub(crate) fn post(&self, index: usize) -> &Post {
        &self.posts[index]
    }

    /// The shard whose connection may have been idle longest; of equal ones `own`.
    pub(crate) fn longest_idle(&self, own: usize) -> Option<usize> {
        let indices = std::iter::once(own).chain((0..self.posts.len()).filter(|i| *i != own));
        let times = indices.map(|index| (self.posts[index].idle_since_ms(), index));
        let (since_ms, index) = times.min_by_key(|(since_ms, _)| *since_ms)?;
        (since_ms != NEVER_MS).then_some(index)
    }

    /// What all shards know of an address.
    pub(crate) fn address(&self, address: IpAddr) -> Arc<Address> {
        self.addresses.get(address)
    }

    /// Forgets an address that no shard knows.
    pub(crate) fn forget(&self, address: IpAddr) {
        self.addresses.forget(address);
    }

    /// The number of addresses with connections.
    #[cfg(test)]
    pub(crate) fn known_addresses(&self) -> usize {
        self.addresses.len()
    }

    /// Asks a shard other than `own` to close an idle connection of this address; false if none is known to
    /// have one.
    pub(crate) fn ask_for(&self, address: &Address, of: IpAddr, own: usize) -> bool {
        let Some(place) = address.claim(own) else { return false };
        let shards = self.posts.iter().skip(place).step_by(addresses::PLACES);
        shards.for_each(|post| post.ask_for(of));
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
