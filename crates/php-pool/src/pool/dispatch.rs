//! The assignment of requests to workers.
//!
//! Called when a request is submitted, and when a worker gets room or exits. Invariants: a request is
//! queued only while no worker has room; requests that a worker has not started are given to others
//! when it drains.

use super::members::Members;
use super::worker::Worker;
use super::{Phase, Pool};
use crate::exchange::Exchange;
use outboard_reactor::now_ms;
use std::rc::Rc;

impl Pool {
    /// Assigns a request to a worker with room.
    pub(super) fn assign(&self, members: &mut Members, slot: usize, exchange: Rc<Exchange>) {
        if let Some(worker) = members.workers[slot].as_mut()
            && let Err(corrupt) = worker.assign(exchange, self.timing_from(now_ms()))
        {
            self.kill_for_protocol_error(worker, corrupt);
        }
        members.update_room_list(slot);
        self.publish(members);
    }

    /// Gives a worker with room the next request of its backlog or queued ones, drains it, or leaves it
    /// idle.
    pub(super) fn assign_next(&self, members: &mut Members, slot: usize) {
        let Some(worker) = members.workers[slot].as_mut() else { return };
        if worker.is_reserve {
            return;
        }
        let has_started = worker.backlog_len() > 0 && worker.start_next(self.timing_from(now_ms()));
        if !has_started && self.should_drain(members, slot) {
            return self.drain_slot(members, slot);
        }
        let is_own = members.workers[slot].as_ref().is_some_and(|worker| worker.is_own);
        if !has_started && is_own && self.is_beyond_maximum(members) {
            return self.assign_from_own_worker(members, slot);
        }
        if self.return_to_be_replaced(members, slot) || self.offer(members, slot) {
            return;
        }
        while members.workers[slot].as_ref().is_some_and(Worker::has_room) {
            let Some(exchange) = members.next_queued() else { break };
            self.assign(members, slot, exchange);
        }
        members.update_room_list(slot);
        self.fill_backlog(members, slot);
        self.publish(members);
        // Once more, since another thread may have wished for it before it could see this one.
        let is_lent = self.offer(members, slot);
        if !is_lent && !is_own {
            self.end_rest();
        }
    }

    /// Whether a worker exists only for requests of our own workers. That of a retiring pool without a
    /// share of the workers is for its last requests.
    fn is_beyond_maximum(&self, members: &Members) -> bool {
        let max = self.manager.borrow().sizing.bounds.max() + self.successors();
        // There are rarely so many slots; only then workers are counted.
        let is_retiring = self.phase.get() == Phase::Retiring;
        let slots = members.workers.len() + members.lent.len();
        !is_retiring && slots > max && members.active() > max
    }

    /// Gives a worker beyond the maximum a request that another worker waits for, or drains it. With
    /// any other request it might come to wait for a worker itself.
    fn assign_from_own_worker(&self, members: &mut Members, slot: usize) {
        match members.next_from_own_worker() {
            Some(exchange) => self.assign(members, slot, exchange),
            None => self.drain_slot(members, slot),
        }
    }

    /// Adds a request to the shortest backlog of a quick worker, if there is room.
    pub(super) fn assign_to_backlog(&self, members: &mut Members, exchange: &Rc<Exchange>) -> bool {
        if !exchange.body.borrow().is_spent() {
            return false;
        }
        let now_ms = now_ms();
        let quick = members.all_mut().filter(|worker| worker.has_backlog_room(now_ms));
        let Some(worker) = quick.min_by_key(|worker| worker.backlog_len()) else { return false };
        if let Err(corrupt) = worker.add_to_backlog(exchange.clone()) {
            self.kill_for_protocol_error(worker, corrupt);
        }
        true
    }

    /// Moves queued requests to the backlog of a quick worker.
    fn fill_backlog(&self, members: &mut Members, slot: usize) {
        if self.phase.get() == Phase::Retiring || self.is_overtaken(members) {
            return;
        }
        let now_ms = now_ms();
        let has_room = |worker: &Worker| worker.has_backlog_room(now_ms);
        while members.workers[slot].as_ref().is_some_and(has_room) {
            let Some(exchange) = members.next_queued() else { return };
            if !exchange.body.borrow().is_spent() {
                return members.requeue(vec![exchange]);
            }
            let Some(worker) = members.workers[slot].as_mut() else { return };
            if let Err(corrupt) = worker.add_to_backlog(exchange) {
                self.kill_for_protocol_error(worker, corrupt);
            }
        }
    }

    /// Gives withdrawn requests to other workers, before queued ones.
    pub(super) fn reassign(&self, members: &mut Members, exchanges: Vec<Rc<Exchange>>) {
        members.requeue(exchanges);
        while !members.queue.is_empty() {
            let Some(slot) = members.least_loaded() else { return };
            let Some(exchange) = members.next_queued() else { return };
            self.assign(members, slot, exchange);
        }
    }
}
