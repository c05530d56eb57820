//! Single flight: while one request has a page made, others for the same page wait for it.
//!
//! Owned by one [`super::PageCache`]. Invariants: at most one flight for a URL; a flight ends when
//! its [`Lead`] is dropped, however that comes about, and everybody who waited is woken.

use outboard_page_cache::Key;
use outboard_reactor::{TaskId, current_task, now_ms, wake};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::task::Poll;

/// For how long requests for a page that turned out not to be kept are not made to wait for each
/// other.
const HOPELESS_MS: u64 = 10_000;
/// How many such pages are remembered; one takes the place of another.
const HOPELESS_PLACES: usize = 4096;

/// The pages that are being made.
#[derive(Debug)]
pub(super) struct Flights {
    under_way: RefCell<HashMap<Key, Rc<Flight>>>,
    /// Hash of a key, and until when it is known not to be kept.
    hopeless: RefCell<Box<[(u64, u64)]>>,
    hasher: RandomState,
}

/// A page that is being made.
#[derive(Debug, Default)]
pub(super) struct Flight {
    is_over: Cell<bool>,
    waiting: RefCell<Vec<TaskId>>,
}

/// What a request for a page is to do.
pub(super) enum Part {
    /// Have it made; drop the lead when it is stored, or is not going to be.
    Lead(Lead),
    /// Wait for who does.
    Wait(Rc<Flight>),
    /// Have it made for itself alone: it is not going to be stored.
    Alone,
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            under_way: RefCell::default(),
            hopeless: RefCell::new(vec![(0, 0); HOPELESS_PLACES].into()),
            hasher: RandomState::new(),
        }
    }
}

impl Flights {
    /// The part of a request for `key`.
    pub(super) fn join(self: &Rc<Self>, key: &Key) -> Part {
        let (hash, place) = self.place(key);
        let (known, until_ms) = self.hopeless.borrow()[place];
        if known == hash && now_ms() < until_ms {
            return Part::Alone;
        }
        let mut under_way = self.under_way.borrow_mut();
        if let Some(flight) = under_way.get(key) {
            return Part::Wait(flight.clone());
        }
        let flight = Rc::new(Flight::default());
        under_way.insert(key.clone(), flight.clone());
        Part::Lead(Lead { flights: self.clone(), key: key.clone(), flight })
    }

    /// How many requests wait for a page that another has made.
    pub(super) fn waiting(&self) -> usize {
        self.under_way.borrow().values().map(|flight| flight.waiting.borrow().len()).sum()
    }

    fn place(&self, key: &Key) -> (u64, usize) {
        let hash = self.hasher.hash_one(key);
        (hash, hash as usize % HOPELESS_PLACES)
    }
}

impl Flight {
    /// Waits for its end.
    pub(super) fn poll_over(&self) -> Poll<()> {
        if self.is_over.get() {
            return Poll::Ready(());
        }
        let (mut waiting, task) = (self.waiting.borrow_mut(), current_task());
        if !waiting.contains(&task) {
            waiting.push(task);
        }
        Poll::Pending
    }
}

/// The right to have a page made for all who wait for it.
#[derive(Debug)]
pub(super) struct Lead {
    flights: Rc<Flights>,
    key: Key,
    flight: Rc<Flight>,
}

impl Lead {
    /// PeerInfo the flight of a page that is not kept: the next requests do not wait for each other.
    pub(super) fn give_up(self) {
        let (hash, place) = self.flights.place(&self.key);
        self.flights.hopeless.borrow_mut()[place] = (hash, now_ms() + HOPELESS_MS);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.flights.under_way.borrow_mut().remove(&self.key);
        self.flight.is_over.set(true);
        self.flight.waiting.take().into_iter().for_each(wake);
    }
}
