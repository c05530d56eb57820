//! [`Threads`]: the pools of one app as they are on several threads, here on one loop: the test delivers
//! their messages.

use super::*;
use outboard_reactor::MailboxReceiver;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// More rounds of messages than any event needs.
const MAX_ROUNDS: usize = 20;

/// See the module. Each pool has a zygote that accepts orders and does nothing.
pub(super) struct Threads {
    pub(super) pools: Vec<Rc<Pool>>,
    mailboxes: Vec<Option<MailboxReceiver<Message>>>,
}

impl Threads {
    /// Serving pools.
    pub(super) fn new(count: usize, settings: impl Fn() -> PoolSettings) -> Self {
        let shards = PoolShards::new(count);
        let pool = |at| {
            let pool = pool_of_shard(settings(), shards.place(at), Target::Off);
            start_zygote(&pool);
            pool.core.php.borrow_mut().set_started();
            pool
        };
        let pools: Vec<_> = (0..count).map(pool).collect();
        let mailboxes = pools.iter().map(|pool| pool.core.shard.receiver()).collect();
        Self { pools, mailboxes }
    }

    /// Whose workers process one request at a time.
    pub(super) fn sequential(count: usize) -> Self {
        Self::new(count, sequential)
    }

    /// Handles the messages that a pool has now; returns how many.
    pub(super) async fn deliver(&self, at: usize) -> usize {
        let mut count = 0;
        while let Some(message) = self.next_message(at).await {
            self.pools[at].on_message(message);
            count += 1;
        }
        poll(&self.pools[at]);
        count
    }

    /// The next message to a pool.
    pub(super) async fn next_message(&self, at: usize) -> Option<Message> {
        let mut next = pin!(self.mailboxes[at].as_ref()?.next());
        poll_fn(|context| {
            Poll::Ready(match next.as_mut().poll(context) {
                Poll::Ready(message) => Some(message),
                Poll::Pending => None,
            })
        })
        .await
    }

    /// Handles messages until there are none.
    ///
    /// # Panics
    /// They do not end.
    #[track_caller]
    pub(super) fn settle(&self) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            for _ in 0..MAX_ROUNDS {
                let mut count = 0;
                for at in 0..self.pools.len() {
                    count += self.deliver(at).await;
                }
                if count == 0 {
                    return;
                }
            }
            panic!("messages do not end at {caller}");
        }
    }

    /// The thread of a pool is at its end: messages to it are returned.
    pub(super) fn end(&mut self, at: usize) {
        self.mailboxes[at] = None;
    }

    /// The pools that have a worker, by its number.
    pub(super) fn threads_of(&self, number: u64) -> Vec<usize> {
        let has = |pool: &Rc<Pool>| pool.core.members.borrow().roster.slot_of(number).is_some();
        (0..self.pools.len()).filter(|at| has(&self.pools[*at])).collect()
    }

    /// Which thread has a worker of this pool, as far as it knows.
    pub(super) fn known_borrower(&self, owner: usize, number: u64) -> Option<usize> {
        self.pools[owner].core.members.borrow().lent.borrower_of(number)
    }
}
