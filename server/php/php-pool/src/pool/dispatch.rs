//! [`Dispatcher`]: which worker gets which request, which worker is drained, and which one another thread gets
//! ([`super::lending`]).
//!
//! Called when a request is submitted, when a worker gets room or exits, and by the manager. It owns what decides
//! that: the size of the pool, replacements, operations under way, the placement on cores, and what is borrowed. It
//! forks nothing: it says that a fork is needed. Invariants: a request is queued only while no worker has room;
//! requests that a worker has not started are given to others when it drains; a worker in reserve gets no request.

use super::core::PoolCore;
use super::leases::Timing;
use super::lending::borrower::Borrower;
use super::lending::fairness::Fairness;
use super::members::Members;
use super::operations::OperationQueue;
use super::placement::Placement;
use super::replacements::Replacements;
use super::sizing::Sizing;
use super::worker::Worker;
use crate::exchange::Exchange;
use outboard_log::Reason;
use outboard_reactor::now_ms;
use outboard_ring::channel::Capacities;
use outboard_ring::frame::FRAME_HEADER_BYTES;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// The longest request frame: it has to fit into a ring.
pub(super) const MAX_FRAME_BYTES: usize =
    Capacities::DEFAULT.request_bytes as usize - FRAME_HEADER_BYTES;
/// A running request that takes longer delays the backlog of its worker.
const STUCK_MS: u64 = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) core: Rc<PoolCore>,
    pub(super) sizing: RefCell<Sizing>,
    pub(super) replacements: Replacements,
    pub(super) operations: OperationQueue,
    pub(super) placement: Placement,
    pub(super) borrower: Borrower,
    fairness: Fairness,
}

impl Dispatcher {
    pub(super) fn new(core: Rc<PoolCore>) -> Self {
        Self {
            sizing: RefCell::new(Sizing::new(&core.settings, &core.shard)),
            replacements: Replacements::default(),
            operations: OperationQueue::new(core.clone()),
            placement: Placement::new(&core.settings),
            borrower: Borrower::default(),
            fairness: Fairness::default(),
            core,
        }
    }

    /// Assigns a request to a worker with room at once, or queues it.
    ///
    /// # Errors
    /// The reason why the request cannot be queued.
    pub(super) fn submit(
        &self,
        exchange: Rc<Exchange>,
        local_peer: Option<SocketAddr>,
    ) -> Result<(), Reason> {
        let core = &self.core;
        core.counters.borrow_mut().requests += 1;
        core.lifecycle.end_rest();
        if core.lifecycle.is_gone() {
            return Err(Reason::AppDown);
        }
        if core.is_refusing() {
            core.counters.borrow_mut().rejected += 1;
            return Err(Reason::AppDown);
        }
        if exchange.frame.len() > MAX_FRAME_BYTES {
            return Err(Reason::HeadersTooLarge);
        }
        exchange.local_peer.set(local_peer);
        exchange.route.set(core.routes.borrow_mut().number(&exchange.frame));
        let mut members = core.members.borrow_mut();
        if let Some(slot) = members.roster.least_loaded() {
            self.assign(&mut members, slot, exchange);
            return Ok(());
        }
        let may_overtake = members.queue.is_empty() && !self.is_overtaken(&members);
        if may_overtake && self.assign_to_backlog(&mut members, &exchange) {
            return Ok(());
        }
        // A request that an idle worker of another thread is for does not wait in the queue.
        if self.is_queue_full(&members, core.shard.all_free_elsewhere()) {
            core.counters.borrow_mut().rejected += 1;
            let is_down = core.lifecycle.is_starting() && core.php.borrow().failure.is_some();
            return Err(if is_down { Reason::AppDown } else { Reason::QueueFull });
        }
        core.counters.borrow_mut().queued += 1;
        members.queue.push(exchange);
        core.publish(&members);
        self.borrower.want_worker(&core.shard, &members.queue);
        core.lifecycle.end_slow_ticks();
        Ok(())
    }

    /// Whether as many requests as may wait do so, on all threads, and `more` in addition.
    fn is_queue_full(&self, members: &Members, more: usize) -> bool {
        let queued = members.queue.len() + self.core.shard.queued_elsewhere();
        queued >= self.core.settings.queue_length.saturating_add(more)
    }

    /// Whether a request of another thread has to be processed before those here.
    pub(super) fn is_overtaken(&self, members: &Members) -> bool {
        self.fairness.is_overtaken(&self.core.shard, &members.queue)
    }

    /// The client of an exchange is gone: the request is removed from the queue, withdrawn from its
    /// worker, or aborted if it was started.
    pub(super) fn abandon(&self, exchange: &Rc<Exchange>) {
        exchange.abandon();
        let mut members = self.core.members.borrow_mut();
        let Some(assignment) = exchange.assignment.get() else {
            members.queue.remove(exchange);
            return self.core.publish(&members);
        };
        let Some(worker) = members.roster.find(assignment.worker) else { return };
        if worker.leases.get(assignment.tag).is_none() {
            return;
        }
        if worker.withdraw(assignment.tag, now_ms()).is_none() {
            worker.abort(assignment.tag);
            return;
        }
        if worker.has_room() {
            self.assign_next(&mut members, assignment.worker.slot);
        }
    }

    /// The start and deadline of a request that starts now.
    fn timing(&self) -> Timing {
        Timing::starting(now_ms(), self.core.settings.deadline_ms)
    }

    /// Assigns a request to a worker with room.
    fn assign(&self, members: &mut Members, slot: usize, exchange: Rc<Exchange>) {
        if let Some(worker) = members.roster.get_mut(slot) {
            debug_assert!(worker.has_room() && !worker.is_reserve, "{worker:?} gets a request");
            if let Err(corrupt) = worker.assign(exchange, self.timing()) {
                self.core.kill_for_protocol_error(members, slot, corrupt);
            }
        }
        members.roster.update_room_list(slot);
        self.core.publish(members);
    }

    /// Gives a worker with room the next request of its backlog or queued ones, drains it, or leaves it
    /// idle.
    pub(super) fn assign_next(&self, members: &mut Members, slot: usize) {
        let Some(worker) = members.roster.get_mut(slot) else { return };
        if worker.is_reserve {
            return;
        }
        let is_own = worker.is_own;
        let has_started = worker.backlog_len() > 0 && worker.start_next(self.timing());
        if !has_started && self.should_drain(members, slot) {
            return self.core.drain_slot(members, slot);
        }
        if !has_started && is_own && self.is_beyond_maximum(members) {
            return self.assign_from_own_worker(members, slot);
        }
        if self.return_to_be_replaced(members, slot) || self.offer(members, slot) {
            return;
        }
        while members.roster.get(slot).is_some_and(Worker::has_room) {
            let Some(exchange) = members.queue.next() else { break };
            self.assign(members, slot, exchange);
        }
        members.roster.update_room_list(slot);
        self.fill_backlog(members, slot);
        self.core.publish(members);
        // Once more, since another thread may have wished for it before it could see this one.
        let is_lent = self.offer(members, slot);
        if !is_lent && !is_own {
            self.core.lifecycle.end_rest();
        }
    }

    /// Whether a worker exists only for requests of our own workers. That of a retiring pool without a
    /// share of the workers is for its last requests.
    fn is_beyond_maximum(&self, members: &Members) -> bool {
        let max = self.sizing.borrow().bounds.max() + self.replacements.len();
        // There are rarely so many slots; only then workers are counted.
        let slots = members.roster.slots() + members.lent.len();
        !self.core.lifecycle.is_retiring() && slots > max && members.active() > max
    }

    /// Gives a worker beyond the maximum a request that another worker waits for, or drains it. With
    /// any other request it might come to wait for a worker itself.
    fn assign_from_own_worker(&self, members: &mut Members, slot: usize) {
        match members.queue.next_from_own_worker() {
            Some(exchange) => self.assign(members, slot, exchange),
            None => self.core.drain_slot(members, slot),
        }
    }

    /// Adds a request to the shortest backlog of a quick worker, if there is room.
    fn assign_to_backlog(&self, members: &mut Members, exchange: &Rc<Exchange>) -> bool {
        if !exchange.body.borrow().is_spent() {
            return false;
        }
        let now_ms = now_ms();
        let quick = members.roster.all_mut().filter(|worker| worker.has_backlog_room(now_ms));
        let Some(worker) = quick.min_by_key(|worker| worker.backlog_len()) else { return false };
        let slot = worker.id.slot;
        if let Err(corrupt) = worker.add_to_backlog(exchange.clone()) {
            self.core.kill_for_protocol_error(members, slot, corrupt);
        }
        true
    }

    /// Moves queued requests to the backlog of a quick worker.
    fn fill_backlog(&self, members: &mut Members, slot: usize) {
        if self.core.lifecycle.is_retiring() || self.is_overtaken(members) {
            return;
        }
        let now_ms = now_ms();
        let has_room = |worker: &Worker| worker.has_backlog_room(now_ms);
        while members.roster.get(slot).is_some_and(has_room) {
            let Some(exchange) = members.queue.next() else { return };
            if !exchange.body.borrow().is_spent() {
                return members.queue.requeue(vec![exchange]);
            }
            let Some(worker) = members.roster.get_mut(slot) else { return };
            if let Err(corrupt) = worker.add_to_backlog(exchange) {
                self.core.kill_for_protocol_error(members, slot, corrupt);
            }
        }
    }

    /// Gives withdrawn requests to other workers, before queued ones.
    pub(super) fn reassign(&self, members: &mut Members, exchanges: Vec<Rc<Exchange>>) {
        members.queue.requeue(exchanges);
        while !members.queue.is_empty() {
            let Some(slot) = members.roster.least_loaded() else { break };
            let Some(exchange) = members.queue.next() else { break };
            self.assign(members, slot, exchange);
        }
        // A borrowed worker may outlive its pool.
        if self.core.lifecycle.is_gone() {
            members.queue.fail_all(Reason::AppDown);
        }
    }

    /// Moves the backlogs of workers whose running requests take long to other workers, also of other
    /// threads.
    pub(super) fn redistribute_stuck_backlogs(&self, now_ms: u64) {
        let mut members = self.core.members.borrow_mut();
        for slot in 0..members.roster.slots() {
            let Some(worker) = members.roster.get_mut(slot) else { continue };
            if worker.backlog_len() > 0 && worker.busy_ms(now_ms) > Some(STUCK_MS) {
                let withdrawn = worker.withdraw_backlog(now_ms);
                self.reassign(&mut members, withdrawn);
                if !members.queue.is_empty() {
                    self.borrower.want_worker(&self.core.shard, &members.queue);
                }
            }
        }
    }
}
