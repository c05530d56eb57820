//! The exits of workers that are lent: the home learns of one by its zygote, the holder has the requests.
//!
//! Called by the manager, when a zygote has reaped a worker or has exited itself, and for
//! [`Message`](super::messages::Message)s. Invariants: an exit is handled once, by the pool that has the
//! worker; a report that misses a worker on its way follows it by way of its home, which knows where it
//! went before it arrives there.

use super::Pool;
use super::messages::Message;
use outboard_reactor::{now_ms, with_deadline};

/// The time for another thread to learn of the end of its borrowed workers.
pub(super) const FORGET_TIMEOUT_MS: u64 = 1_000;

impl Pool {
    /// The zygote has reaped a worker: its holder learns of it.
    pub(super) fn worker_exited(&self, number: u64, code: Option<i32>, how: &str) {
        let loan = self.members.borrow().lent.get(&number).copied();
        let Some(loan) = loan else { return self.reap(number, code, how) };
        let message = Message::Exited { number, code, how: how.to_owned() };
        if self.shard.try_send(loan.holder, message).is_err() {
            self.loan_ended(number);
        }
    }

    /// A borrowed worker has exited. If it is not here any more, its home knows, or comes to know, which
    /// thread has it: that was sent before.
    pub(super) fn borrowed_exited(&self, number: u64, code: Option<i32>, how: String) {
        let is_here = self.members.borrow().slot_of(number).is_some();
        let home = self.shard.home_of(number);
        if home == self.shard.index() {
            return self.worker_exited(number, code, &how);
        }
        if is_here {
            self.reap(number, code, &how);
            return self.end_loan(number);
        }
        self.shard.send(home, Message::Exited { number, code, how });
    }

    /// A borrowed worker does not exist any more.
    pub(super) fn end_loan(&self, number: u64) {
        if !self.shard.is_home_of(number) {
            self.shard.send(self.shard.home_of(number), Message::Reaped { number });
        }
    }

    /// A worker that was lent does not exist any more.
    pub(super) fn loan_ended(&self, number: u64) {
        let was_lent = self.members.borrow_mut().lent.remove(&number).is_some();
        if was_lent && self.settings.forks_script() {
            self.used_forks.update(|used| used + 1);
            self.replace_used_forks();
        }
        self.demand.set();
    }

    /// All workers of this zygote have died with it.
    pub(super) fn lent_workers_died(&self) {
        let lent: Vec<u64> = self.members.borrow().lent.keys().copied().collect();
        for number in lent {
            self.worker_exited(number, None, "died with its zygote");
        }
    }

    /// Waits until the other threads know that the workers are gone that they have. They could not learn
    /// of it from a pool that is gone itself.
    pub(super) async fn lent_workers_forgotten(&self) {
        let until_ms = now_ms() + FORGET_TIMEOUT_MS;
        let forgotten = with_deadline(until_ms, async {
            while !self.members.borrow().lent.is_empty() {
                self.demand.wait().await;
            }
        });
        // A thread that does not respond in time is blocked, and has the deadlines of its requests.
        let _ = forgotten.await;
    }
}
