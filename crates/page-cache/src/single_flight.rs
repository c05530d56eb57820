//! Single flight: while one request renders a page, others for the same page wait for it.
//!
//! Owned by one [`crate::PageCache`]. Invariants: at most one flight for a key; a flight ends when its
//! [`Leader`] is dropped, also by a panic or a closed connection, and all its followers are woken.

use crate::key::Key;
use outboard_reactor::{TaskId, current_task, now_ms, wake};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::task::Poll;

/// For how long requests do not wait for each other after a page that could not be stored.
const UNSTORABLE_MS: u64 = 10_000;
/// The number of such pages that are remembered; a newer one replaces another with the same index.
const UNSTORABLE_PLACES: usize = 4096;

/// The pages that are being rendered.
#[derive(Debug)]
pub struct SingleFlight {
    flights: RefCell<HashMap<Key, Rc<Flight>>>,
    /// Hash of a key, and until when its page counts as not storable.
    unstorable: RefCell<Box<[(u64, u64)]>>,
    hasher: RandomState,
}

/// A page that is being rendered.
#[derive(Debug, Default)]
pub struct Flight {
    is_over: Cell<bool>,
    followers: RefCell<Vec<TaskId>>,
}

/// The part of a request in a flight.
#[derive(Debug)]
pub enum Role {
    /// It renders the page, and drops the leader once the page is stored or known not to be.
    Leader(Leader),
    /// It waits for the leader.
    Follower(Rc<Flight>),
    /// It renders the page for itself: the last one could not be stored.
    Alone,
}

impl Default for SingleFlight {
    fn default() -> Self {
        Self {
            flights: RefCell::default(),
            unstorable: RefCell::new(vec![(0, 0); UNSTORABLE_PLACES].into()),
            hasher: RandomState::new(),
        }
    }
}

impl SingleFlight {
    /// The role of a request for `key`.
    pub fn join(self: &Rc<Self>, key: &Key) -> Role {
        let (hash, place) = self.place(key);
        let (known, until_ms) = self.unstorable.borrow()[place];
        if known == hash && now_ms() < until_ms {
            return Role::Alone;
        }
        let mut flights = self.flights.borrow_mut();
        if let Some(flight) = flights.get(key) {
            return Role::Follower(flight.clone());
        }
        let flight = Rc::new(Flight::default());
        flights.insert(key.clone(), flight.clone());
        Role::Leader(Leader { single_flight: self.clone(), key: key.clone(), flight })
    }

    /// The number of requests that wait for another one.
    pub fn waiting(&self) -> usize {
        self.flights.borrow().values().map(|flight| flight.followers.borrow().len()).sum()
    }

    fn place(&self, key: &Key) -> (u64, usize) {
        let hash = self.hasher.hash_one(key);
        (hash, hash as usize % UNSTORABLE_PLACES)
    }
}

impl Flight {
    /// Waits for its end.
    pub fn poll_over(&self) -> Poll<()> {
        if self.is_over.get() {
            return Poll::Ready(());
        }
        let (mut followers, task) = (self.followers.borrow_mut(), current_task());
        if !followers.contains(&task) {
            followers.push(task);
        }
        Poll::Pending
    }
}

/// The right to render a page for all that wait for it.
#[derive(Debug)]
pub struct Leader {
    single_flight: Rc<SingleFlight>,
    key: Key,
    flight: Rc<Flight>,
}

impl Leader {
    /// Ends the flight of a page that is not stored: the next requests do not wait for each other.
    pub fn give_up(self) {
        let (hash, place) = self.single_flight.place(&self.key);
        self.single_flight.unstorable.borrow_mut()[place] = (hash, now_ms() + UNSTORABLE_MS);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.single_flight.flights.borrow_mut().remove(&self.key);
        self.flight.is_over.set(true);
        self.flight.followers.take().into_iter().for_each(wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{key, until};
    use outboard_reactor::{run, spawn};
    use std::future::poll_fn;

    fn lead(flights: &Rc<SingleFlight>, path: &str) -> Leader {
        match flights.join(&key(path)) {
            Role::Leader(leader) => leader,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn one_request_leads_and_the_others_wait_for_its_end() {
        run(async {
            let flights = Rc::new(SingleFlight::default());
            let leader = lead(&flights, "/");
            let woken = Rc::new(Cell::new(0));
            for _ in 0..3 {
                let Role::Follower(flight) = flights.join(&key("/")) else { panic!("two leaders") };
                let woken = woken.clone();
                spawn(async move {
                    poll_fn(|_| flight.poll_over()).await;
                    woken.set(woken.get() + 1);
                });
            }
            until(|| flights.waiting() == 3).await;
            drop(lead(&flights, "/other"));
            assert_eq!((flights.waiting(), woken.get()), (3, 0), "another page ended");
            drop(leader);
            until(|| woken.get() == 3).await;
            assert_eq!(flights.waiting(), 0);
            drop(lead(&flights, "/"));
        })
        .unwrap();
    }

    #[test]
    fn a_page_that_is_not_stored_makes_no_request_wait() {
        run(async {
            let flights = Rc::new(SingleFlight::default());
            lead(&flights, "/").give_up();
            assert!(matches!(flights.join(&key("/")), Role::Alone));
            drop(lead(&flights, "/other"));
        })
        .unwrap();
    }
}
