//! Requests that wait: the time limit of the queue, backlogs of slow workers, and loopback requests.
//!
//! Called by the manager in each tick. Invariants: a request waits for `queue_timeout_ms` at most;
//! requests that a worker of the same pool waits for are served even if the pool is full.

use super::super::members::{Origin, QueuedRequest};
use super::super::{Phase, Pool};
use crate::exchange::{End, Exchange};
use outboard_log::Reason;
use outboard_reactor::{blocking, spawn};
use outboard_supervisor::loopback;
use std::net::SocketAddr;
use std::rc::Rc;

/// A running request that takes longer delays the backlog of its worker.
const STUCK_MS: u64 = 4;

impl Pool {
    /// Fails requests that were queued for too long.
    pub(in crate::pool) fn expire_queue(&self, now_ms: u64) {
        let timeout_ms = self.settings.queue_timeout_ms;
        let mut members = self.members.borrow_mut();
        while let Some(queued) = members.queue.front()
            && now_ms.saturating_sub(queued.exchange.submitted_ms) >= timeout_ms
        {
            queued.exchange.finish(End::Failed(Reason::QueueTimeout));
            members.queue.pop_front();
        }
        self.publish(&members);
    }

    /// Moves the backlogs of workers whose running requests take long to other workers, also of other
    /// threads.
    pub(in crate::pool) fn redistribute_stuck_backlogs(&self, now_ms: u64) {
        let mut members = self.members.borrow_mut();
        for slot in 0..members.workers.len() {
            let Some(worker) = members.workers[slot].as_mut() else { continue };
            if worker.backlog_len() > 0 && worker.busy_ms(now_ms) > Some(STUCK_MS) {
                let withdrawn = worker.withdraw_backlog(now_ms);
                self.reassign(&mut members, withdrawn);
                if !members.queue.is_empty() {
                    self.want_worker(&members);
                }
            }
        }
    }

    /// Fails all queued requests.
    pub(in crate::pool) fn fail_queue(&self, reason: Reason) {
        let mut members = self.members.borrow_mut();
        for queued in members.queue.drain(..) {
            queued.exchange.finish(End::Failed(reason));
        }
        self.publish(&members);
    }

    /// Finds loopback requests. A worker that requests its own site waits for a worker of the same
    /// pool, and in a full pool for itself. Such requests overtake others, and may fork workers beyond
    /// the maximum. The owner of the connection is determined only when needed and on a thread, because
    /// that reads `/proc`.
    pub(in crate::pool) fn detect_loopback(self: &Rc<Self>, now_ms: u64) {
        if self.phase.get() != Phase::Serving || self.settings.loopback_slots == 0 {
            return;
        }
        let Some((exchange, peer, pids)) = self.take_suspect(now_ms) else { return };
        let pool = self.clone();
        spawn(async move {
            if blocking(move || loopback::is_owned_by(peer, &pids)).await {
                pool.prioritize(&exchange);
            }
        });
    }

    /// The queued request from this machine whose check is due, with the processes that it may come
    /// from. The kernel's list of sockets is not a snapshot, and a socket may be missing while others
    /// come and go (`inet_diag_dump_icsk` in net/ipv4/inet_diag.c), so that a request is checked again
    /// when it has waited twice as long; one that never was is checked before.
    pub(in crate::pool) fn take_suspect(
        &self,
        now_ms: u64,
    ) -> Option<(Rc<Exchange>, SocketAddr, Vec<i32>)> {
        let mut members = self.members.borrow_mut();
        let due = members.queue.iter_mut().filter_map(|queued| {
            let Origin::Unchecked { after_ms } = &mut queued.origin else { return None };
            let peer = queued.exchange.local_peer.get()?;
            let waited_ms = now_ms.saturating_sub(queued.exchange.submitted_ms);
            (waited_ms >= *after_ms).then_some((after_ms, &queued.exchange, peer))
        });
        let (after_ms, exchange, peer) = due.min_by_key(|(after_ms, ..)| **after_ms)?;
        *after_ms = after_ms.saturating_mul(2);
        Some((exchange.clone(), peer, self.shard.all_pids()))
    }

    /// Moves a loopback request to the head of the queue, and forks a worker for it if permitted.
    pub(in crate::pool) fn prioritize(self: &Rc<Self>, exchange: &Rc<Exchange>) {
        let mut members = self.members.borrow_mut();
        let is_it = |queued: &QueuedRequest| Rc::ptr_eq(&queued.exchange, exchange);
        let Some(at) = members.queue.iter().position(is_it) else { return };
        let Some(queued) = members.queue.remove(at) else { return };
        members.queue.push_front(QueuedRequest { origin: Origin::OwnWorker, ..queued });
        let max = self.manager.borrow().sizing.bounds.max() + self.settings.loopback_slots;
        let may_fork = members.active() < max;
        drop(members);
        if may_fork {
            self.fork();
        }
    }
}
