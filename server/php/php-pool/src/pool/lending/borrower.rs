//! [`Borrower`]: requests an idle worker of another thread while requests wait here.
//!
//! Called by the dispatcher. Invariants: one thread is asked at a time; if none has an idle worker, the next
//! one that becomes idle anywhere is wished for.

use super::messages::Message;
use super::shards::Shard;
use crate::pool::queue::Queue;
use std::cell::Cell;

/// A thread that was asked for a worker and has not answered.
#[derive(Debug, Clone, Copy)]
struct Asked {
    thread: usize,
    /// How many were asked before, and this one.
    tries: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(in crate::pool) struct Borrower {
    asked: Cell<Option<Asked>>,
}

impl Borrower {
    /// Requests wait here: an idle worker of another thread is requested, or the next one that becomes
    /// idle.
    pub(in crate::pool) fn want_worker(&self, shard: &Shard, queue: &Queue) {
        if shard.count() > 1 && self.asked.get().is_none() {
            self.ask(shard, queue, shard.index(), 0);
        }
    }

    /// A worker has arrived.
    pub(in crate::pool) fn received(&self) {
        self.asked.set(None);
    }

    /// The thread that was asked had none. Returns whether that was the last one.
    pub(in crate::pool) fn was_refused(&self, shard: &Shard, queue: &Queue) -> bool {
        let Some(Asked { thread, tries }) = self.asked.take() else { return false };
        if !queue.is_empty() {
            self.ask(shard, queue, thread, tries);
        }
        self.asked.get().is_none()
    }

    /// Asks the next thread after `last` that seems to have an idle worker, or all for their next one.
    fn ask(&self, shard: &Shard, queue: &Queue, last: usize, tries: usize) {
        if self.ask_next(shard, last, tries) {
            return;
        }
        let Some(since_ms) = queue.oldest_ms() else { return };
        shard.wish(since_ms);
        // A worker may have become idle before its thread could see the wish.
        self.ask_next(shard, last, tries);
    }

    fn ask_next(&self, shard: &Shard, last: usize, tries: usize) -> bool {
        debug_assert!(self.asked.get().is_none(), "a thread is asked already");
        let may_ask = tries + 1 < shard.count();
        let next = shard.free_elsewhere(last).filter(|_| may_ask);
        let asked = next.filter(|at| {
            let message = Message::Borrow { by: shard.index() };
            shard.try_send(*at, message).is_ok()
        });
        self.asked.set(asked.map(|thread| Asked { thread, tries: tries + 1 }));
        asked.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Exchange;
    use crate::pool::lending::shards::PoolShards;
    use outboard_buffer::RequestBody;
    use std::rc::Rc;

    fn waiting() -> Queue {
        let mut queue = Queue::default();
        queue.push(Rc::new(Exchange::new(Vec::new(), RequestBody::empty(), 1, 7, 1)));
        queue
    }

    fn in_loop(test: impl FnOnce() + 'static) {
        outboard_reactor::run(async { test() }).unwrap();
    }

    #[test]
    fn threads_with_idle_workers_are_asked_in_turn() {
        in_loop(|| {
            let shards = PoolShards::new(3);
            let [own, second, third] = [0, 1, 2].map(|index| shards.place(index));
            let (borrower, queue) = (Borrower::default(), waiting());
            second.publish(1, 0);
            third.publish(1, 0);
            borrower.want_worker(&own, &queue);
            assert_eq!(borrower.asked.get().map(|asked| asked.thread), Some(1));
            assert!(!borrower.was_refused(&own, &queue));
            assert_eq!(borrower.asked.get().map(|asked| asked.thread), Some(2));
            assert!(borrower.was_refused(&own, &queue));
            assert!(!borrower.was_refused(&own, &queue), "nobody was asked");
        });
    }

    #[test]
    fn without_idle_workers_the_next_one_is_wished_for() {
        in_loop(|| {
            let shards = PoolShards::new(2);
            let (own, other) = (shards.place(0), shards.place(1));
            let borrower = Borrower::default();
            borrower.want_worker(&own, &waiting());
            assert!(borrower.asked.get().is_none());
            assert_eq!(other.take_wish(u64::MAX), Some(0));
        });
    }
}
