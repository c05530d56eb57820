//! [`Seats`]: the workers by their numbers, and the items that wait for them.
//!
//! Owned by the server. A connection is bound to a seat, a worker's number, and not to a process, so
//! that the successor of a dead worker takes its place. Invariants: an item is in one seat's queue or in
//! flight at one process; when a process dies, its items return to the head of its seat's queue in
//! their order.

use crate::item::Item;
use crate::settings::Dispatch;
use outboard_reactor::{Event, now_ms};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

/// The worker has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// The way to a worker process.
pub trait WorkerLink: fmt::Debug {
    /// Its identity, unique in this process.
    fn key(&self) -> (u64, u64);

    /// Its generation; a reload begins the next one.
    fn generation(&self) -> u32;

    /// Sends an event without waiting.
    ///
    /// # Errors
    /// [`Gone`].
    fn send(&self, event: &[u8]) -> Result<(), Gone>;

    /// Whether what was sent is in its ring; the current task is woken when it is.
    fn poll_room(&self) -> Poll<Result<(), Gone>>;
}

/// A worker that has joined.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) link: Rc<dyn WorkerLink>,
    /// The worker's number.
    pub(crate) seat: u32,
    pub(crate) is_task_worker: bool,
    pub(crate) concurrency: usize,
    /// Items that it has received and not finished.
    pub(crate) in_flight: RefCell<BTreeMap<u64, Item>>,
    /// While it handles items at which another worker has died.
    pub(crate) suspects: RefCell<Suspects>,
    /// Wakes the task that sends to it.
    pub(crate) has_work: Event,
    pub(crate) is_leaving: Cell<bool>,
    pub(crate) is_gone: Cell<bool>,
}

/// Items in flight that may be what a worker has died of. All items that it had are under suspicion, so
/// its successor gets them in smaller groups, and those of a group at which that dies one by one.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// Those that are not acknowledged.
    items: BTreeSet<u64>,
    /// Whether one of them is to be alone.
    has_lone: bool,
    since_ms: u64,
}

/// The most items at which one worker has died that a worker has at a time.
const SUSPECTS_MAX: usize = 32;
/// A worker that has survived them for so long gets others.
const SUSPICION_MS: u64 = 1000;

/// What a process gets next.
#[derive(Debug)]
pub(crate) enum Next {
    Item(Item),
    /// Nothing, until it has finished some.
    Nothing,
    /// Nothing for so many milliseconds, unless it acknowledges a suspect before.
    After(u64),
}

impl Suspects {
    /// How long an item at which so many workers have died has to wait.
    fn wait_ms(&self, deaths: u8, now_ms: u64) -> Option<u64> {
        let most = match deaths {
            0 => 1,
            1 if !self.has_lone => SUSPECTS_MAX,
            _ => 1,
        };
        let is_allowed = self.items.len() < most;
        let left_ms = (self.since_ms + SUSPICION_MS).saturating_sub(now_ms);
        (!is_allowed && left_ms > 0).then_some(left_ms)
    }

    fn add(&mut self, item: &Item, now_ms: u64) {
        if item.deaths > 0 {
            self.items.insert(item.id);
            self.has_lone |= item.deaths > 1;
            self.since_ms = now_ms;
        }
    }

    /// An item was acknowledged; returns whether others may wait for that.
    pub(crate) fn remove(&mut self, item: u64) -> bool {
        let was_suspect = self.items.remove(&item);
        self.has_lone &= !self.items.is_empty();
        was_suspect
    }
}

/// The place of a worker.
#[derive(Debug, Default)]
struct Seat {
    process: Option<Rc<Process>>,
    pending: VecDeque<Item>,
    is_task_worker: bool,
    /// Since when it has no process.
    vacated_ms: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    seats: BTreeMap<u32, Seat>,
    /// Items that came while there were no workers at all.
    homeless: VecDeque<Item>,
    last: u32,
}

/// How long a seat waits for the successor of its worker.
const VACANT_MS: u64 = 10_000;

impl Seats {
    /// The process takes its seat, and with it the items that wait there.
    pub(crate) fn join(&mut self, process: Rc<Process>) {
        let seat = self.seats.entry(process.seat).or_default();
        seat.is_task_worker = process.is_task_worker;
        if !process.is_task_worker {
            seat.pending.extend(self.homeless.drain(..));
        }
        process.has_work.set();
        seat.process = Some(process);
    }

    /// A process has gone, or takes no more: these items return to its seat.
    pub(crate) fn leave(&mut self, process: &Rc<Process>, items: Vec<Item>) {
        let Some(seat) = self.seats.get_mut(&process.seat) else { return };
        for item in items.into_iter().rev() {
            seat.pending.push_front(item);
        }
        match &seat.process {
            Some(present) if Rc::ptr_eq(present, process) => {
                seat.process = None;
                seat.vacated_ms = now_ms();
            }
            Some(present) => present.has_work.set(),
            None => {}
        }
    }

    /// Gives up seats whose workers have no successors; returns their items.
    pub(crate) fn abandon_vacant(&mut self, now_ms: u64) -> Vec<Item> {
        let has_others = self.seats.values().any(|seat| seat.process.is_some());
        let is_lost = |seat: &Seat| seat.process.is_none() && now_ms > seat.vacated_ms + VACANT_MS;
        let lost: Vec<u32> =
            self.seats.iter().filter(|(_, seat)| is_lost(seat)).map(|(id, _)| *id).collect();
        if !has_others {
            return Vec::new();
        }
        let seats = lost.into_iter().filter_map(|id| self.seats.remove(&id));
        seats.flat_map(|seat| seat.pending).collect()
    }

    pub(crate) fn has(&self, id: u32) -> bool {
        self.seats.get(&id).is_some_and(|seat| !seat.is_task_worker)
    }

    /// The seat for a number.
    pub(crate) fn by_number(&self, number: u64) -> Option<u32> {
        let count = self.workers().count() as u64;
        let index = usize::try_from(number.checked_rem(count)?).ok()?;
        self.workers().nth(index).map(|(id, _)| *id)
    }

    /// The seat for an item that may go to any worker.
    pub(crate) fn choose(&mut self, dispatch: Dispatch) -> Option<u32> {
        let chosen = match dispatch {
            Dispatch::RoundRobin => {
                let next = self.workers().map(|(id, _)| *id).find(|id| *id > self.last);
                next.or_else(|| self.workers().map(|(id, _)| *id).next())
            }
            _ => self.workers().min_by_key(|(_, seat)| seat.load()).map(|(id, _)| *id),
        }?;
        self.last = chosen;
        Some(chosen)
    }

    fn workers(&self) -> impl Iterator<Item = (&u32, &Seat)> {
        self.seats.iter().filter(|(_, seat)| !seat.is_task_worker)
    }

    /// Queues an item for a worker, or for the first that comes.
    pub(crate) fn push(&mut self, seat: Option<u32>, item: Item) {
        match seat.and_then(|id| self.seats.get_mut(&id)) {
            Some(seat) => {
                seat.pending.push_back(item);
                if let Some(process) = &seat.process {
                    process.has_work.set();
                }
            }
            None => self.homeless.push_back(item),
        }
    }

    /// The next item for a process.
    pub(crate) fn next(&mut self, process: &Rc<Process>) -> Next {
        let Some(seat) = self.seats.get_mut(&process.seat) else { return Next::Nothing };
        let is_present = seat.process.as_ref().is_some_and(|there| Rc::ptr_eq(there, process));
        if !is_present || process.in_flight.borrow().len() >= process.concurrency {
            return Next::Nothing;
        }
        let (mut suspects, now_ms) = (process.suspects.borrow_mut(), now_ms());
        let Some(first) = seat.pending.front() else { return Next::Nothing };
        if let Some(ms) = suspects.wait_ms(first.deaths, now_ms) {
            return Next::After(ms);
        }
        let Some(item) = seat.pending.pop_front() else { return Next::Nothing };
        suspects.add(&item, now_ms);
        Next::Item(item)
    }

    /// Items that wait.
    pub(crate) fn pending(&self) -> usize {
        self.seats.values().map(|seat| seat.pending.len()).sum::<usize>() + self.homeless.len()
    }

    /// The process of a worker's number.
    pub(crate) fn process(&self, id: u32) -> Option<&Rc<Process>> {
        self.seats.get(&id)?.process.as_ref()
    }
}

impl Seat {
    fn load(&self) -> usize {
        let in_flight =
            self.process.as_ref().map_or(1 << 20, |process| process.in_flight.borrow().len());
        self.pending.len() + in_flight
    }
}
