//! The workers of a pool and the queue of requests.
//!
//! Owned by the pool. Invariant: the list of workers with room is exact if
//! [`Members::update_room_list`] was called after each change.

use super::loans::Loan;
use super::worker::Worker;
use crate::exchange::Exchange;
use crate::worker_id::WorkerId;
use outboard_supervisor::worker::lifecycle::State;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// A request from this machine that is queued for longer may come from a worker that waits for it.
const SUSPICIOUS_MS: u64 = 50;

/// A request in the queue.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) exchange: Rc<Exchange>,
    pub(super) origin: Origin,
}

/// The origin of a queued request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Another client, as far as is known; to be checked once the request has waited for so long.
    Unchecked { after_ms: u64 },
    /// One of our own workers, which waits for it.
    OwnWorker,
}

impl Origin {
    /// That of a request which joins the queue.
    pub(super) const UNKNOWN: Self = Self::Unchecked { after_ms: SUSPICIOUS_MS };
}

#[derive(Debug, Default)]
pub(super) struct Members {
    /// By slot; a slot is reused after its worker was reaped.
    pub(super) workers: Vec<Option<Worker>>,
    /// Slots of workers with room; the last idle one was used most recently.
    pub(super) with_room: Vec<usize>,
    pub(super) queue: VecDeque<QueuedRequest>,
    /// Workers of this zygote that other threads have, by number.
    pub(super) lent: HashMap<u64, Loan>,
}

impl Members {
    pub(super) fn all(&self) -> impl Iterator<Item = &Worker> + Clone {
        self.workers.iter().flatten()
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.workers.iter_mut().flatten()
    }

    /// The worker with this identity, unless it is gone or being killed.
    pub(super) fn find(&mut self, id: WorkerId) -> Option<&mut Worker> {
        let worker = self.workers.get_mut(id.slot)?.as_mut()?;
        (worker.id == id && worker.state() != State::Killing).then_some(worker)
    }

    /// The slot of the worker with this number in the zygote.
    pub(super) fn slot_of(&self, number: u64) -> Option<usize> {
        let is_it = |worker: &Worker| worker.process.number == number;
        self.workers.iter().position(|worker| worker.as_ref().is_some_and(is_it))
    }

    /// A slot without a worker.
    pub(super) fn free_slot(&mut self) -> usize {
        self.workers.iter().position(Option::is_none).unwrap_or_else(|| {
            self.workers.push(None);
            self.workers.len() - 1
        })
    }

    /// Removes the worker of a slot, if there is one.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Worker> {
        let worker = self.workers[slot].take()?;
        if worker.is_listed {
            self.with_room.retain(|listed| *listed != slot);
        }
        Some(worker)
    }

    /// The worker with room and the fewest requests; of idle ones the one that was used most recently.
    pub(super) fn least_loaded(&self) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for &slot in self.with_room.iter().rev() {
            let Some(worker) = &self.workers[slot] else { continue };
            let load = worker.in_flight();
            if load == 0 {
                return Some(slot);
            }
            if best.is_none_or(|(_, least)| load < least) {
                best = Some((slot, load));
            }
        }
        best.map(|(slot, _)| slot)
    }

    /// Adds a worker to the list of workers with room, or removes it.
    pub(super) fn update_room_list(&mut self, slot: usize) {
        let Some(worker) = self.workers[slot].as_mut() else { return };
        let has_room = worker.has_room();
        if has_room == worker.is_listed {
            return;
        }
        worker.is_listed = has_room;
        if has_room {
            self.with_room.push(slot);
        } else if let Some(at) = self.with_room.iter().rposition(|listed| *listed == slot) {
            self.with_room.remove(at);
        }
    }

    /// Slots of idle workers, longest idle first.
    pub(super) fn idle(&self) -> Vec<usize> {
        let is_idle = |slot: &usize| {
            self.workers[*slot].as_ref().is_some_and(|worker| worker.state() == State::Idle)
        };
        self.with_room.iter().copied().filter(is_idle).collect()
    }

    /// When the first queued request was submitted.
    pub(super) fn oldest_queued_ms(&self) -> Option<u64> {
        self.queue.front().map(|queued| queued.exchange.submitted_ms)
    }

    /// Removes the next request whose client still waits.
    pub(super) fn next_queued(&mut self) -> Option<Rc<Exchange>> {
        loop {
            let exchange = self.queue.pop_front()?.exchange;
            if !exchange.abandoned.get() && !exchange.has_ended() {
                return Some(exchange);
            }
        }
    }

    /// Removes the next request from our own workers; they are before all others.
    pub(super) fn next_from_own_worker(&mut self) -> Option<Rc<Exchange>> {
        let is_own = self.queue.front().is_some_and(|first| first.origin == Origin::OwnWorker);
        if is_own { self.next_queued() } else { None }
    }

    /// The number of workers of this zygote that are not draining or dying, without one in reserve.
    pub(super) fn active(&self) -> usize {
        let is_active = |worker: &&Worker| worker.state() < State::Draining && !worker.is_reserve;
        self.own().filter(is_active).count() + self.lent.len()
    }

    /// The workers of this zygote, without those that other threads have.
    pub(super) fn own(&self) -> impl Iterator<Item = &Worker> + Clone {
        self.all().filter(|worker| worker.is_own)
    }

    /// Puts withdrawn requests back to the head of the queue, in their order.
    pub(super) fn requeue(&mut self, exchanges: Vec<Rc<Exchange>>) {
        for exchange in exchanges.into_iter().rev() {
            let origin = Origin::UNKNOWN;
            self.queue.push_front(QueuedRequest { exchange, origin });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_buffer::RequestBody;

    fn exchanges(count: u64) -> Vec<Rc<Exchange>> {
        let exchange = |id| Exchange::new(Vec::new(), RequestBody::empty(), id, 0, 1);
        (0..count).map(|id| Rc::new(exchange(id))).collect()
    }

    fn ids(members: &mut Members) -> Vec<u64> {
        std::iter::from_fn(|| members.next_queued()).map(|exchange| exchange.request_id).collect()
    }

    #[test]
    fn requeued_requests_are_before_others_in_their_order() {
        let test = async {
            let (mut members, all) = (Members::default(), exchanges(5));
            members.requeue(all[3..].to_vec());
            members.requeue(all[..3].to_vec());
            all[1].abandon();
            assert_eq!(ids(&mut members), [0, 2, 3, 4]);
        };
        outboard_reactor::run(test).unwrap();
    }

    #[test]
    fn only_the_first_request_can_be_one_from_an_own_worker() {
        let test = async {
            let mut members = Members::default();
            for (exchange, origin) in exchanges(3).into_iter().zip([
                Origin::OwnWorker,
                Origin::UNKNOWN,
                Origin::OwnWorker,
            ]) {
                members.queue.push_back(QueuedRequest { exchange, origin });
            }
            assert_eq!(members.next_from_own_worker().unwrap().request_id, 0);
            assert!(members.next_from_own_worker().is_none(), "another one is before it");
            assert_eq!(ids(&mut members), [1, 2]);
        };
        outboard_reactor::run(test).unwrap();
    }
}
