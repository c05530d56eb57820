//! [`PoolShards`]: the pools of one app, of which each thread of the server has one, and [`Shard`]: the
//! place of one of them.
//!
//! A generation has one for each pool of its configuration. The threads divide the workers among
//! themselves, and each serves the requests of its connections. Invariants: a worker has the same
//! number on every thread, and the number tells whose child it is; what a thread publishes about itself
//! is a hint, on which nothing but the speed depends.

use super::crash_loop::CrashLoop;
use super::messages::Message;
use outboard_reactor::{MailboxReceiver, MailboxSender, Share, mailbox};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
#[derive(Debug)]
pub struct PoolShards {
    places: Box<[Notice]>,
    /// The processes of all workers: a request may come from one of them.
    pids: Mutex<BTreeSet<i32>>,
    /// How many of the places wish for a worker.
    wishes: AtomicUsize,
    crash_loop: CrashLoop,
}

/// What one thread tells the others, on a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Notice {
    /// Workers with room.
    free: AtomicUsize,
    /// Queued requests.
    queued: AtomicUsize,
    /// Workers that may still be forked.
    vacant: AtomicUsize,
    /// Whether the pool has no process until a request comes.
    is_asleep: AtomicBool,
    /// When the oldest request came that the next idle worker of another thread should process; 0
    /// without this wish.
    wish_ms: AtomicU64,
    sender: MailboxSender<Message>,
    receiver: Mutex<Option<MailboxReceiver<Message>>>,
}

impl PoolShards {
    /// For so many threads, at least one.
    pub fn new(count: usize) -> Arc<Self> {
        let place = |_| {
            let (sender, receiver) = mailbox();
            Notice {
                free: AtomicUsize::new(0),
                queued: AtomicUsize::new(0),
                vacant: AtomicUsize::new(0),
                is_asleep: AtomicBool::new(false),
                wish_ms: AtomicU64::new(0),
                sender,
                receiver: Mutex::new(Some(receiver)),
            }
        };
        let places = (0..count.max(1)).map(place).collect();
        Arc::new(Self {
            places,
            pids: Mutex::default(),
            wishes: AtomicUsize::new(0),
            crash_loop: CrashLoop::default(),
        })
    }

    /// The place of a thread; the first is that of the lead.
    pub fn place(self: &Arc<Self>, index: usize) -> Shard {
        assert!(index < self.places.len(), "there is no such thread");
        Shard { index, shards: self.clone() }
    }

    /// The pools of the other threads that were not started never will be: the first one need not wait
    /// for them.
    pub fn give_up(self: &Arc<Self>) {
        let others = (LEAD + 1..self.places.len()).map(|index| self.place(index));
        others.filter(|one| one.receiver().is_some()).for_each(|one| one.close());
    }
}

/// The place of a pool among those of its app.
#[derive(Debug, Clone)]
pub struct Shard {
    index: usize,
    shards: Arc<PoolShards>,
}

impl Shard {
    /// That of a pool without others.
    pub fn only() -> Self {
        PoolShards::new(1).place(0)
    }

    /// Its number; the first is the lead's.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The number of all.
    pub fn count(&self) -> usize {
        self.shards.places.len()
    }

    /// Whether its zygote is the first one, of which the others are forked.
    pub(in crate::pool) fn is_lead(&self) -> bool {
        self.index == LEAD
    }

    /// Its part of a number of workers of the pool.
    pub(in crate::pool) fn share(&self, total: usize) -> usize {
        Share { index: self.index, count: self.count() }.of(total)
    }

    /// The number of the next worker of this shard; `last` is 0 before the first.
    pub(in crate::pool) fn next_worker(&self, last: u64) -> u64 {
        let next = if last == 0 { self.index as u64 + 1 } else { last + self.count() as u64 };
        debug_assert!(self.is_owner_of(next), "{next} after {last} is a child of another thread");
        next
    }

    /// The shard whose zygote has forked a worker.
    pub(in crate::pool) fn owner_of(&self, worker: u64) -> usize {
        (worker - 1) as usize % self.count()
    }

    /// Whether a worker was forked by the zygote of this shard.
    pub(in crate::pool) fn is_owner_of(&self, worker: u64) -> bool {
        self.owner_of(worker) == self.index
    }

    /// The messages to this shard; taken once.
    pub(in crate::pool) fn receiver(&self) -> Option<MailboxReceiver<Message>> {
        self.own().receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sends a message. A pool that is gone needs none.
    pub(in crate::pool) fn send(&self, to: usize, message: Message) {
        let _ = self.try_send(to, message);
    }

    /// Sends a message, or returns it if the pool is gone.
    pub(in crate::pool) fn try_send(&self, to: usize, message: Message) -> Result<(), Message> {
        self.shards.places[to].sender.send(message)
    }

    /// The pool is gone.
    pub(in crate::pool) fn close(&self) {
        self.send(self.index, Message::Gone);
        if !self.is_lead() {
            self.send(LEAD, Message::Closed);
        }
    }

    /// Publishes how many workers have room here, and how many requests wait.
    ///
    /// The order of `free` and of the wishes is that of all threads: a shard that wishes for a worker
    /// and looks then, and one that publishes a worker and looks for wishes then, cannot miss each other.
    pub(in crate::pool) fn publish(&self, free: usize, queued: usize) {
        if self.own().free.load(Ordering::Relaxed) != free {
            self.own().free.store(free, Ordering::SeqCst);
        }
        self.own().queued.store(queued, Ordering::Relaxed);
    }

    /// Publishes whether the pool sleeps. The lead may have waited for that.
    pub(in crate::pool) fn publish_asleep(&self, is_asleep: bool) {
        let was_asleep = self.own().is_asleep.swap(is_asleep, Ordering::SeqCst);
        if is_asleep && !was_asleep && !self.is_lead() {
            self.send(LEAD, Message::Asleep);
        }
    }

    /// Whether the pool of another shard does not sleep.
    pub(in crate::pool) fn is_awake_elsewhere(&self) -> bool {
        self.others().any(|at| !self.shards.places[at].is_asleep.load(Ordering::SeqCst))
    }

    /// Publishes how many workers may still be forked here.
    pub(in crate::pool) fn publish_vacant(&self, vacant: usize) {
        self.own().vacant.store(vacant, Ordering::Relaxed);
    }

    /// The other shards that may fork workers, and how many.
    pub(in crate::pool) fn vacant_elsewhere(&self) -> impl Iterator<Item = (usize, usize)> {
        let vacant = |at: usize| (at, self.shards.places[at].vacant.load(Ordering::Relaxed));
        self.others().map(vacant).filter(|(_, vacant)| *vacant > 0)
    }

    /// Requests that wait on the other shards.
    pub(in crate::pool) fn queued_elsewhere(&self) -> usize {
        self.others().map(|at| self.shards.places[at].queued.load(Ordering::Relaxed)).sum()
    }

    /// Workers that seem to have room on the other shards.
    pub(in crate::pool) fn all_free_elsewhere(&self) -> usize {
        self.others().map(|at| self.shards.places[at].free.load(Ordering::Relaxed)).sum()
    }

    /// Another shard that seems to have a worker with room, the first after `asked`.
    pub(in crate::pool) fn free_elsewhere(&self, asked: usize) -> Option<usize> {
        let count = self.count();
        let mut others = (1..=count).map(|step| (asked + step) % count);
        let is_free = |at: &usize| self.shards.places[*at].free.load(Ordering::SeqCst) > 0;
        others.find(|at| *at != self.index && is_free(at))
    }

    /// Wishes for the next idle worker of another shard, for a request that came at `since_ms`.
    pub(in crate::pool) fn wish(&self, since_ms: u64) {
        if self.own().wish_ms.swap(since_ms.max(1), Ordering::SeqCst) == 0 {
            self.shards.wishes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The oldest request here came at `since_ms` now. Without one the wish ends.
    pub(in crate::pool) fn renew_wish(&self, since_ms: Option<u64>) {
        let wish = &self.own().wish_ms;
        let (before, since_ms) = (wish.load(Ordering::Relaxed), since_ms.map_or(0, |ms| ms.max(1)));
        let is_other = before != 0 && before != since_ms;
        // If another shard has granted it meanwhile, there is none.
        if is_other && exchange(wish, before, since_ms) && since_ms == 0 {
            self.shards.wishes.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether another shard has wished for a worker for a request that came before `before_ms`.
    pub(in crate::pool) fn has_wish(&self, before_ms: u64) -> bool {
        self.oldest_wish(before_ms).is_some()
    }

    /// The shard with the oldest of these wishes, which gets a worker.
    pub(in crate::pool) fn take_wish(&self, before_ms: u64) -> Option<usize> {
        let (since_ms, at) = self.oldest_wish(before_ms)?;
        let is_taken = exchange(&self.shards.places[at].wish_ms, since_ms, 0);
        is_taken.then(|| {
            self.shards.wishes.fetch_sub(1, Ordering::SeqCst);
            at
        })
    }

    fn oldest_wish(&self, before_ms: u64) -> Option<(u64, usize)> {
        if self.shards.wishes.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let wish = |at: usize| (self.shards.places[at].wish_ms.load(Ordering::SeqCst), at);
        let wishes = self.others().map(wish);
        wishes.filter(|(since_ms, _)| (1..before_ms).contains(since_ms)).min()
    }

    /// The others, from the next on, so that not all ask the same one.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (index, count) = (self.index, self.count());
        (1..count).map(move |step| (index + step) % count)
    }

    /// A worker has started.
    pub(in crate::pool) fn add_pid(&self, pid: i32) {
        self.pids(|pids| pids.insert(pid));
    }

    /// It has exited.
    pub(in crate::pool) fn remove_pid(&self, pid: Option<i32>) {
        if let Some(pid) = pid {
            self.pids(|pids| pids.remove(&pid));
        }
    }

    /// The processes of all workers of the app.
    pub(in crate::pool) fn all_pids(&self) -> Vec<i32> {
        self.pids(|pids| pids.iter().copied().collect())
    }

    fn pids<T>(&self, act: impl FnOnce(&mut BTreeSet<i32>) -> T) -> T {
        act(&mut self.shards.pids.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// That of the app.
    pub(in crate::pool) fn crash_loop(&self) -> &CrashLoop {
        &self.shards.crash_loop
    }

    fn own(&self) -> &Notice {
        &self.shards.places[self.index]
    }
}

/// The shard whose zygote the others are forked of.
pub(in crate::pool) const LEAD: usize = 0;

/// Replaces a wish, unless it has changed.
fn exchange(wish: &AtomicU64, before: u64, after: u64) -> bool {
    wish.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}
