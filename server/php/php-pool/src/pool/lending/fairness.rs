//! [`Fairness`]: the order of the requests of different threads, while not all have a worker.
//!
//! Asked by the dispatcher. A thread gives its workers to its own requests first, which costs nothing; but
//! a busy thread would never have an idle one to lend. Invariant: a request waits hardly longer than those
//! of any other thread.

use super::BORROWED_IDLE_MS;
use super::shards::Shard;
use crate::pool::queue::Queue;
use outboard_reactor::now_ms;
use std::cell::Cell;

/// A request of another thread that has waited longer by so much is processed first. Workers move between
/// busy threads no more often than this.
const FAIR_MS: u64 = 20;
const _: () = assert!(FAIR_MS < BORROWED_IDLE_MS, "a worker would go home before it is offered");

/// See the module.
#[derive(Debug, Default)]
pub(in crate::pool) struct Fairness {
    /// The last result of [`Self::is_overtaken`], and when it was found.
    overtaken: Cell<(u64, bool)>,
}

impl Fairness {
    /// Requests of other threads that came before this are processed before those here.
    pub(in crate::pool) fn overtaken_before_ms(queue: &Queue) -> u64 {
        queue.oldest_ms().map_or(u64::MAX, |own_ms| own_ms.saturating_sub(FAIR_MS))
    }

    /// Whether a request of another thread has to be processed before those here. Backlogs do not grow
    /// then, so that their workers become idle and can be lent. It looks at the other threads once in a
    /// millisecond.
    pub(in crate::pool) fn is_overtaken(&self, shard: &Shard, queue: &Queue) -> bool {
        if shard.count() == 1 {
            return false;
        }
        let now_ms = now_ms();
        if self.overtaken.get().0 != now_ms {
            let own_ms = queue.oldest_ms().unwrap_or(now_ms);
            let is_overtaken = shard.has_wish(own_ms.saturating_sub(FAIR_MS));
            self.overtaken.set((now_ms, is_overtaken));
        }
        self.overtaken.get().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Exchange;
    use crate::pool::lending::shards::PoolShards;
    use outboard_buffer::RequestBody;
    use std::rc::Rc;

    fn queue(submitted_ms: u64) -> Queue {
        let mut queue = Queue::default();
        let exchange = Exchange::new(Vec::new(), RequestBody::empty(), 1, submitted_ms, 1);
        queue.push(Rc::new(exchange));
        queue
    }

    #[test]
    fn a_request_of_another_thread_that_waits_longer_is_first() {
        outboard_reactor::run(async {
            let shards = PoolShards::new(2);
            let (own, other) = (shards.place(0), shards.place(1));
            let is_overtaken = |queue: &Queue| Fairness::default().is_overtaken(&own, queue);
            assert!(!is_overtaken(&queue(100)), "nobody waits there");
            other.wish(50);
            assert!(!is_overtaken(&queue(50 + FAIR_MS)) && is_overtaken(&queue(51 + FAIR_MS)));
            assert_eq!(Fairness::overtaken_before_ms(&queue(51 + FAIR_MS)), 51);
            assert_eq!(Fairness::overtaken_before_ms(&Queue::default()), u64::MAX);
        })
        .unwrap();
    }
}
