//! [`Queue`]: requests that wait for a worker.
//!
//! Owned by the pool, beside the [roster](super::roster) whose workers get them. It calls neither; requests
//! that wait no longer end here. Invariants: requests are taken in their order, except that those which a
//! worker of the same pool waits for are before all others, and withdrawn ones are put back to the head; one
//! whose client is gone is never taken; none has a worker.

use crate::exchange::{End, Exchange};
use outboard_log::Reason;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

/// A request from this machine that is queued for longer may come from a worker that waits for it.
const SUSPICIOUS_MS: u64 = 50;

/// A request in the queue.
#[derive(Debug)]
struct QueuedRequest {
    exchange: Rc<Exchange>,
    origin: Origin,
}

impl QueuedRequest {
    fn new(exchange: Rc<Exchange>) -> Self {
        debug_assert!(exchange.assignment.get().is_none(), "a queued request has a worker");
        Self { exchange, origin: Origin::Unchecked { after_ms: SUSPICIOUS_MS } }
    }
}

/// The origin of a queued request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Another client, as far as is known; to be checked once the request has waited for so long.
    Unchecked { after_ms: u64 },
    /// One of our own workers, which waits for it.
    OwnWorker,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: VecDeque<QueuedRequest>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// When the first request was submitted.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.requests.front().map(|queued| queued.exchange.submitted_ms)
    }

    pub(super) fn push(&mut self, exchange: Rc<Exchange>) {
        self.requests.push_back(QueuedRequest::new(exchange));
    }

    /// Removes the next request whose client still waits.
    pub(super) fn next(&mut self) -> Option<Rc<Exchange>> {
        loop {
            let exchange = self.requests.pop_front()?.exchange;
            if !exchange.abandoned.get() && !exchange.has_ended() {
                return Some(exchange);
            }
        }
    }

    /// Removes the next request from our own workers; they are before all others.
    pub(super) fn next_from_own_worker(&mut self) -> Option<Rc<Exchange>> {
        if self.begins_with_own_worker() { self.next() } else { None }
    }

    /// Whether the next request is one from our own workers.
    pub(super) fn begins_with_own_worker(&self) -> bool {
        self.requests.front().is_some_and(|first| first.origin == Origin::OwnWorker)
    }

    /// Puts withdrawn requests back to the head, in their order.
    pub(super) fn requeue(&mut self, exchanges: Vec<Rc<Exchange>>) {
        for exchange in exchanges.into_iter().rev() {
            self.requests.push_front(QueuedRequest::new(exchange));
        }
    }

    /// Removes a request whose client is gone.
    pub(super) fn remove(&mut self, exchange: &Rc<Exchange>) {
        self.requests.retain(|queued| !Rc::ptr_eq(&queued.exchange, exchange));
    }

    /// Fails requests that have waited for so long.
    pub(super) fn expire(&mut self, now_ms: u64, timeout_ms: u64) {
        while let Some(queued) = self.requests.front()
            && now_ms.saturating_sub(queued.exchange.submitted_ms) >= timeout_ms
        {
            queued.exchange.finish(End::Failed(Reason::QueueTimeout));
            self.requests.pop_front();
        }
    }

    /// Refuses the latest requests beyond a number; returns how many.
    pub(super) fn refuse_beyond(&mut self, count: usize) -> u64 {
        let mut refused = 0;
        while self.requests.len() > count
            && let Some(queued) = self.requests.pop_back()
        {
            refused += 1;
            queued.exchange.finish(End::Failed(Reason::QueueFull));
        }
        refused
    }

    /// Fails all requests.
    pub(super) fn fail_all(&mut self, reason: Reason) {
        for queued in self.requests.drain(..) {
            queued.exchange.finish(End::Failed(reason));
        }
    }

    /// The request from this machine whose check is due: whether one of our workers has sent it. The kernel's
    /// list of sockets is not a snapshot, and a socket may be missing while others come and go
    /// (`inet_diag_dump_icsk` in net/ipv4/inet_diag.c), so that a request is checked again when it has waited
    /// twice as long; one that never was is checked before.
    pub(super) fn take_suspect(&mut self, now_ms: u64) -> Option<(Rc<Exchange>, SocketAddr)> {
        let due = self.requests.iter_mut().filter_map(|queued| {
            let Origin::Unchecked { after_ms } = &mut queued.origin else { return None };
            let peer = queued.exchange.local_peer.get()?;
            let waited_ms = now_ms.saturating_sub(queued.exchange.submitted_ms);
            (waited_ms >= *after_ms).then_some((after_ms, &queued.exchange, peer))
        });
        let (after_ms, exchange, peer) = due.min_by_key(|(after_ms, ..)| **after_ms)?;
        *after_ms = after_ms.saturating_mul(2);
        Some((exchange.clone(), peer))
    }

    /// Moves a request of one of our workers to the head; false if it does not wait any more.
    pub(super) fn prioritize(&mut self, exchange: &Rc<Exchange>) -> bool {
        let is_it = |queued: &QueuedRequest| Rc::ptr_eq(&queued.exchange, exchange);
        let at = self.requests.iter().position(is_it);
        let Some(queued) = at.and_then(|at| self.requests.remove(at)) else { return false };
        self.requests.push_front(QueuedRequest { origin: Origin::OwnWorker, ..queued });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_buffer::RequestBody;

    fn exchanges(count: u64) -> Vec<Rc<Exchange>> {
        let exchange = |id| Exchange::new(Vec::new(), RequestBody::empty(), id, 10 * id, 1);
        (0..count).map(|id| Rc::new(exchange(id))).collect()
    }

    fn queue(exchanges: &[Rc<Exchange>]) -> Queue {
        let mut queue = Queue::default();
        exchanges.iter().for_each(|exchange| queue.push(exchange.clone()));
        queue
    }

    fn ids(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.next()).map(|exchange| exchange.request_id).collect()
    }

    fn in_loop(test: impl FnOnce() + 'static) {
        outboard_reactor::run(async { test() }).unwrap();
    }

    fn end_of(exchange: &Exchange) -> Option<End> {
        exchange.take().and_then(|data| data.end)
    }

    #[test]
    fn requeued_requests_are_before_others_in_their_order() {
        in_loop(|| {
            let (mut queue, all) = (Queue::default(), exchanges(5));
            queue.requeue(all[3..].to_vec());
            queue.requeue(all[..3].to_vec());
            all[1].abandon();
            assert_eq!(ids(&mut queue), [0, 2, 3, 4]);
        });
    }

    #[test]
    fn only_the_first_request_can_be_one_from_an_own_worker() {
        in_loop(|| {
            let all = exchanges(3);
            let mut queue = queue(&all);
            assert!(queue.prioritize(&all[2]));
            assert_eq!(queue.next_from_own_worker().unwrap().request_id, 2);
            assert!(!queue.prioritize(&all[2]), "it does not wait any more");
            assert!(queue.next_from_own_worker().is_none(), "another one is before it");
            assert_eq!(ids(&mut queue), [0, 1]);
        });
    }

    #[test]
    fn requests_that_wait_too_long_or_are_too_many_end() {
        in_loop(|| {
            let all = exchanges(6);
            let mut queue = queue(&all);
            queue.expire(1_010, 1_000);
            assert_eq!(queue.oldest_ms(), Some(20));
            assert_eq!(queue.refuse_beyond(3), 1);
            queue.remove(&all[3]);
            queue.fail_all(Reason::AppDown);
            assert!(queue.is_empty());
            let failed = |reason| Some(End::Failed(reason));
            let (timeout, full) = (failed(Reason::QueueTimeout), failed(Reason::QueueFull));
            let down = failed(Reason::AppDown);
            let ends: Vec<_> = all.iter().map(|exchange| end_of(exchange)).collect();
            assert_eq!(ends, [timeout, timeout, down, None, down, full]);
        });
    }

    #[test]
    fn a_local_request_is_checked_again_after_twice_as_long() {
        in_loop(|| {
            let all = exchanges(1);
            let mut queue = queue(&all);
            assert!(queue.take_suspect(1_000_000).is_none(), "it is not from this machine");
            all[0].local_peer.set(Some(([127, 0, 0, 1], 80).into()));
            assert!(queue.take_suspect(SUSPICIOUS_MS - 1).is_none());
            assert!(queue.take_suspect(SUSPICIOUS_MS).is_some());
            assert!(queue.take_suspect(SUSPICIOUS_MS * 2 - 1).is_none());
            assert!(queue.take_suspect(SUSPICIOUS_MS * 2).is_some());
        });
    }
}
