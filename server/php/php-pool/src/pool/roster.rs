//! [`Roster`]: the workers of a pool, and which of them have room.
//!
//! Owned by the pool; it calls no other part. Invariants: a slot has one worker at most; the list of workers
//! with room is exact if [`Roster::update_room_list`] was called after each change.

use super::worker::Worker;
use crate::worker_id::WorkerId;
use outboard_supervisor::worker::lifecycle::State;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// By slot; a slot is reused after its worker was reaped.
    workers: Vec<Option<Worker>>,
    /// Slots of workers with room; the last idle one was used most recently.
    with_room: Vec<usize>,
}

impl Roster {
    pub(super) fn all(&self) -> impl Iterator<Item = &Worker> + Clone {
        self.workers.iter().flatten()
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.workers.iter_mut().flatten()
    }

    /// The workers of this zygote, without those that other threads have.
    pub(super) fn own(&self) -> impl Iterator<Item = &Worker> + Clone {
        self.all().filter(|worker| worker.is_own)
    }

    /// The number of slots, with those that are free.
    pub(super) fn slots(&self) -> usize {
        self.workers.len()
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Worker> {
        self.workers.get(slot)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Worker> {
        self.workers.get_mut(slot)?.as_mut()
    }

    /// The worker with this identity, unless it is gone or being killed.
    pub(super) fn find(&mut self, id: WorkerId) -> Option<&mut Worker> {
        let worker = self.get_mut(id.slot)?;
        (worker.id == id && worker.state() != State::Killing).then_some(worker)
    }

    /// The worker with this number in the zygote.
    pub(super) fn with_number(&mut self, number: u64) -> Option<&mut Worker> {
        self.all_mut().find(|worker| worker.process.number == number)
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

    /// Adds the worker of a free slot.
    pub(super) fn insert(&mut self, slot: usize, worker: Worker) {
        debug_assert!(self.workers[slot].is_none(), "the slot {slot} has a worker");
        debug_assert!(
            !worker.is_listed && worker.id.slot == slot,
            "{:?} in slot {slot}",
            worker.id
        );
        self.workers[slot] = Some(worker);
        self.update_room_list(slot);
    }

    /// Removes the worker of a slot, if there is one.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Worker> {
        let worker = self.workers[slot].take()?;
        if worker.is_listed {
            self.with_room.retain(|listed| *listed != slot);
        }
        self.check();
        Some(worker)
    }

    /// Slots of workers with room.
    pub(super) fn with_room(&self) -> &[usize] {
        &self.with_room
    }

    /// The worker with room and the fewest requests; of idle ones the one that was used most recently.
    pub(super) fn least_loaded(&self) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for &slot in self.with_room.iter().rev() {
            let Some(worker) = &self.workers[slot] else { continue };
            debug_assert!(worker.has_room(), "{:?} has changed without an update", worker.id);
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
        self.check();
    }

    /// Each worker that is marked as listed is in the list once, and no other.
    fn check(&self) {
        let is_listed =
            |slot: &usize| self.workers[*slot].as_ref().is_some_and(|worker| worker.is_listed);
        debug_assert!(self.with_room.iter().all(is_listed), "{:?}", self.with_room);
        let marked = || self.all().filter(|worker| worker.is_listed).count();
        debug_assert_eq!(self.with_room.len(), marked(), "{:?}", self.with_room);
    }

    /// Slots of idle workers, longest idle first.
    pub(super) fn idle(&self) -> Vec<usize> {
        let is_idle =
            |slot: &usize| self.get(*slot).is_some_and(|worker| worker.state() == State::Idle);
        self.with_room.iter().copied().filter(is_idle).collect()
    }

    /// The slot of the worker in reserve: booted and idle beyond the greatest number of workers, so that one
    /// that dies has a successor at once. It gets no request and counts as no worker.
    pub(super) fn reserve(&self) -> Option<usize> {
        let is_it = |worker: &Worker| worker.is_reserve && worker.state() < State::Draining;
        self.workers.iter().position(|worker| worker.as_ref().is_some_and(is_it))
    }

    /// The number of workers of this zygote that are not draining or dying, without one in reserve.
    pub(super) fn active_own(&self) -> usize {
        let is_active = |worker: &&Worker| worker.state() < State::Draining && !worker.is_reserve;
        self.own().filter(is_active).count()
    }

    /// Whether the worker with this number can process requests.
    pub(super) fn is_ready(&self, number: u64) -> bool {
        self.all().any(|worker| worker.process.number == number && worker.is_ready())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::activity::ActiveSlots;
    use super::super::tests::sequential;
    use super::super::worker::NewWorker;
    use super::*;
    use crate::allowance::{Allowance, LogRate};
    use crate::budget::Budget;
    use crate::rings::PolledRings;
    use outboard_buffer::Account;
    use outboard_reactor::now_ms;
    use outboard_ring::channel::Capacities;
    use outboard_supervisor::worker::WorkerProcess;
    use outboard_supervisor::worker::lifecycle::Transition;
    use std::rc::{Rc, Weak};

    /// Rings that nobody polls.
    #[derive(Debug)]
    struct NoRings;

    impl PolledRings for NoRings {
        fn poll_rings(&self, _: &mut Budget) -> bool {
            false
        }

        fn prepare_sleep(&self) -> u64 {
            u64::MAX
        }

        fn rest_rings(&self) -> bool {
            true
        }

        fn cancel_sleep(&self) {}
    }

    /// A roster of workers with these numbers, of which no pool knows; those of even numbers are ready.
    pub(in crate::pool) fn roster(numbers: &[u64]) -> Roster {
        let mut roster = Roster::default();
        let slots = ActiveSlots::new(Rc::default(), Weak::<NoRings>::new());
        for &number in numbers {
            let process = WorkerProcess::prepare(number, Capacities::DEFAULT, now_ms()).unwrap().0;
            let slot = roster.free_slot();
            let new = NewWorker {
                id: WorkerId { pool: 1, slot, number },
                is_own: true,
                process,
                output: None,
                allowance: Rc::new(Allowance::new(LogRate { lines: 1, bytes: 1 })),
                doorbell_source: None,
            };
            let mut worker = Worker::new(new, &sequential(), slots.clone(), &Account::detached());
            if number % 2 == 0 {
                assert_eq!(worker.process.lifecycle.ready(now_ms()), Transition::Applied);
            }
            roster.insert(slot, worker);
        }
        roster
    }

    fn in_loop(test: impl FnOnce() + 'static) {
        outboard_reactor::run(async { test() }).unwrap();
    }

    #[test]
    fn only_workers_with_room_are_listed_and_slots_are_used_again() {
        in_loop(|| {
            let mut roster = roster(&[1, 2, 4]);
            assert_eq!((roster.with_room(), roster.idle()), (&[1, 2][..], vec![1, 2]));
            assert_eq!(roster.least_loaded(), Some(2), "the one that was used most recently");
            assert!(roster.remove(2).is_some() && roster.remove(2).is_none());
            assert_eq!(
                (roster.least_loaded(), roster.free_slot(), roster.slots()),
                (Some(1), 2, 3)
            );
            let id = roster.get(1).unwrap().id;
            assert!(roster.find(id).is_some());
            assert!(roster.find(WorkerId { number: 9, ..id }).is_none(), "a successor in its slot");
        });
    }

    #[test]
    fn a_worker_in_reserve_has_no_room_and_does_not_count() {
        in_loop(|| {
            let mut roster = roster(&[2, 4]);
            roster.with_number(4).unwrap().is_reserve = true;
            roster.update_room_list(1);
            assert_eq!((roster.reserve(), roster.with_room()), (Some(1), &[0][..]));
            assert_eq!(roster.active_own(), 1);
        });
    }
}
