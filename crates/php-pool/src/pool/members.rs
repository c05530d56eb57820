//! The workers of a pool and the queue before them.
//!
//! Invariant: the list of workers with room has exactly those that can be given a request, once
//! [`Members::settle`] was called after the last change.

use super::leases::Run;
use super::worker::Worker;
use crate::exchange::Exchange;
use crate::worker_id::WorkerId;
use outboard_ring::spsc::Corrupt;
use outboard_supervisor::worker::lifecycle::State;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

/// A request that waits for a worker.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) exchange: Rc<Exchange>,
    /// The client's address when it is on this machine: it could be one of our workers.
    pub(super) local_peer: Option<SocketAddr>,
    /// Where it comes from.
    pub(super) origin: Origin,
}

/// Where a waiting request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nobody has looked.
    Unknown,
    /// Not from one of our own workers, as far as can be seen.
    Elsewhere,
    /// From one of our own workers, which waits for it.
    OwnWorker,
}

#[derive(Debug, Default)]
pub(super) struct Members {
    /// By slot; a slot is used again after its worker was reaped.
    pub(super) workers: Vec<Option<Worker>>,
    /// Slots of workers with room; of the idle the last is the warmest.
    with_room: Vec<usize>,
    pub(super) queue: VecDeque<Waiting>,
}

impl Members {
    /// Those that there are.
    pub(super) fn all(&self) -> impl Iterator<Item = &Worker> + Clone {
        self.workers.iter().flatten()
    }

    /// Those that there are.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.workers.iter_mut().flatten()
    }

    /// The worker with this name, unless it has gone or is about to.
    pub(super) fn find(&mut self, id: WorkerId) -> Option<&mut Worker> {
        let worker = self.workers.get_mut(id.slot)?.as_mut()?;
        (worker.id == id && worker.state() != State::Killing).then_some(worker)
    }

    /// Where the worker is that the zygote knows by this number.
    pub(super) fn slot_of(&self, number: u64) -> Option<usize> {
        let is_it = |worker: &Worker| worker.process.number == number;
        self.workers.iter().position(|worker| worker.as_ref().is_some_and(is_it))
    }

    /// Puts a worker into a free slot.
    pub(super) fn add(&mut self, make: impl FnOnce(usize) -> Worker) {
        let slot = self.workers.iter().position(Option::is_none).unwrap_or_else(|| {
            self.workers.push(None);
            self.workers.len() - 1
        });
        self.workers[slot] = Some(make(slot));
    }

    /// Takes a worker out, as far as it is there.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Worker> {
        let worker = self.workers[slot].take()?;
        if worker.is_listed {
            self.with_room.retain(|listed| *listed != slot);
        }
        Some(worker)
    }

    /// The worker to be given the next request: with fewest of them, of the idle the warmest.
    pub(super) fn pick(&self) -> Option<usize> {
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

    /// Lists a worker as one with room, or no longer, after that may have changed.
    pub(super) fn settle(&mut self, slot: usize) {
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

    /// Gives a request to a worker with room. Whatever comes of it, it has it then.
    pub(super) fn begin(
        &mut self,
        slot: usize,
        exchange: Rc<Exchange>,
        run: Run,
    ) -> Result<(), Corrupt> {
        let Some(worker) = self.workers[slot].as_mut() else { return Ok(()) };
        let begun = worker.begin(exchange, run);
        self.settle(slot);
        begun
    }

    /// Slots of those without a request; those that have been idle longest first.
    pub(super) fn idle(&self) -> Vec<usize> {
        let is_idle = |slot: &usize| {
            self.workers[*slot].as_ref().is_some_and(|worker| worker.state() == State::Idle)
        };
        self.with_room.iter().copied().filter(is_idle).collect()
    }

    /// Slots of those with room.
    pub(super) fn with_room(&self) -> Vec<usize> {
        self.with_room.clone()
    }

    /// The next request that somebody still waits for.
    pub(super) fn next_waiting(&mut self) -> Option<Rc<Exchange>> {
        loop {
            let exchange = self.queue.pop_front()?.exchange;
            if !exchange.is_abandoned() && !exchange.has_ended() {
                return Some(exchange);
            }
        }
    }

    /// The next of those that come from our own workers; they wait before all others.
    pub(super) fn next_own(&mut self) -> Option<Rc<Exchange>> {
        let is_own = self.queue.front().is_some_and(|first| first.origin == Origin::OwnWorker);
        if is_own { self.next_waiting() } else { None }
    }

    /// Workers that are there to stay.
    pub(super) fn staying(&self) -> usize {
        self.all().filter(|worker| worker.state() < State::Draining).count()
    }

    /// Puts requests that had been given out back to the head of the queue, in their order.
    pub(super) fn wait_again(&mut self, exchanges: Vec<Rc<Exchange>>) {
        for exchange in exchanges.into_iter().rev() {
            let origin = Origin::Elsewhere;
            self.queue.push_front(Waiting { exchange, local_peer: None, origin });
        }
    }
}
