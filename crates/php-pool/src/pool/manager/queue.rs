//! Time in the queue: its bound, and requests that our own workers wait for.

use super::super::members::{Origin, Waiting};
use super::super::{Phase, Pool};
use crate::exchange::{End, Exchange};
use outboard_log::Reason;
use outboard_reactor::{blocking, spawn};
use outboard_supervisor::loopback;
use std::rc::Rc;

/// A local request that waits longer than this could be the reason why nobody is free.
const SUSPICIOUS_MS: u64 = 50;

/// A present request that takes longer than this holds up what lies ahead.
const STUCK_MS: u64 = 4;

impl Pool {
    /// Answers requests that have waited too long.
    pub(super) fn expire_queue(&self, now_ms: u64) {
        let timeout_ms = self.settings.queue_timeout_ms;
        let mut members = self.members.borrow_mut();
        while let Some(waiting) = members.queue.front()
            && now_ms.saturating_sub(waiting.exchange.submitted_ms) >= timeout_ms
        {
            waiting.exchange.finish(End::Failed(Reason::QueueTimeout));
            members.queue.pop_front();
        }
    }

    /// What lies ahead of a worker whose present request takes long goes to others.
    pub(super) fn free_stuck(&self, now_ms: u64) {
        let mut members = self.members.borrow_mut();
        for slot in 0..members.workers.len() {
            let stuck = members.workers[slot].as_ref().is_some_and(|worker| {
                worker.ahead() > 0 && worker.busy_ms(now_ms) > Some(STUCK_MS)
            });
            if stuck {
                self.redistribute(&mut members, slot);
            }
        }
    }

    /// Answers everything that waits.
    pub(in crate::pool) fn fail_queue(&self, reason: Reason) {
        for waiting in self.members.borrow_mut().queue.drain(..) {
            waiting.exchange.finish(End::Failed(reason));
        }
    }

    /// A worker that calls its own site waits for a worker, and in a full pool for itself. Such
    /// requests go before others and are given workers beyond the maximum. Whether a request is
    /// one is found out lazily and on a thread, since it means reading `/proc`.
    pub(super) fn look_for_loopback(self: &Rc<Self>, now_ms: u64) {
        if self.phase.get() != Phase::Serving || self.settings.loopback_slots == 0 {
            return;
        }
        let Some((exchange, peer, pids)) = self.take_suspect(now_ms) else { return };
        let pool = self.clone();
        spawn(async move {
            if blocking(move || loopback::is_owned_by(peer, &pids)).await {
                pool.serve_first(&exchange);
            }
        });
    }

    /// The first waiting request that could come from one of our workers and was not looked into.
    fn take_suspect(&self, now_ms: u64) -> Option<(Rc<Exchange>, std::net::SocketAddr, Vec<i32>)> {
        let mut members = self.members.borrow_mut();
        let pids = members.all().filter_map(|worker| worker.process.pid).collect();
        let suspect = members.queue.iter_mut().find(|waiting| {
            waiting.origin == Origin::Unknown
                && waiting.local_peer.is_some()
                && now_ms.saturating_sub(waiting.exchange.submitted_ms) >= SUSPICIOUS_MS
        })?;
        suspect.origin = Origin::Elsewhere;
        Some((suspect.exchange.clone(), suspect.local_peer?, pids))
    }

    /// Puts a waiting request before those of others and sees to it that a worker comes for it.
    fn serve_first(self: &Rc<Self>, exchange: &Rc<Exchange>) {
        let mut members = self.members.borrow_mut();
        let Some(at) = members.queue.iter().position(|w| Rc::ptr_eq(&w.exchange, exchange)) else {
            return;
        };
        let Some(waiting) = members.queue.remove(at) else { return };
        members.queue.push_front(Waiting { origin: Origin::OwnWorker, ..waiting });
        let most = self.manager.borrow().sizing.bounds.max() + self.settings.loopback_slots;
        let is_room = members.staying() < most;
        drop(members);
        if is_room {
            self.fork();
        }
    }
}
