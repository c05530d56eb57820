//! Single flight: while one request renders a page, others for the same page wait for it, on all shards.
//!
//! Owned by the pages of a cache, and asked for pages that no shard has: the lock is held for a few
//! instructions. Invariants: at most one flight for a key; a flight ends when its [`Leader`] is dropped,
//! also by a panic or a closed connection, and all its followers are woken, each by its own loop.

use crate::key::Key;
use outboard_reactor::now_ms;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// For how long requests do not wait for each other after a page that could not be stored.
const UNSTORABLE_MS: u64 = 10_000;
/// The number of such pages that are remembered; a newer one replaces another with the same index.
const UNSTORABLE_PLACES: usize = 4096;

/// The pages that are being rendered.
#[derive(Debug)]
pub struct SingleFlight {
    state: Mutex<State>,
    hasher: RandomState,
}

#[derive(Debug)]
struct State {
    flights: HashMap<Key, Arc<Flight>>,
    /// Hash of a key, and until when its page counts as not storable.
    unstorable: Box<[(u64, u64)]>,
}

/// A page that is being rendered.
#[derive(Debug)]
pub struct Flight {
    /// Those that wait for its end; `None` after it.
    followers: Mutex<Option<Vec<Waker>>>,
}

/// The part of a request in a flight.
#[derive(Debug)]
pub enum Role {
    /// It renders the page, and drops the leader once the page is stored or known not to be.
    Leader(Leader),
    /// It waits for the leader.
    Follower(Arc<Flight>),
    /// It renders the page for itself: the last one could not be stored.
    Alone,
}

impl Default for SingleFlight {
    fn default() -> Self {
        let unstorable = vec![(0, 0); UNSTORABLE_PLACES].into();
        let state = State { flights: HashMap::new(), unstorable };
        Self { state: Mutex::new(state), hasher: RandomState::new() }
    }
}

impl SingleFlight {
    /// The role of a request for `key`.
    pub fn join(self: &Arc<Self>, key: &Key) -> Role {
        let (hash, place) = self.place(key);
        let mut state = self.state();
        let (known, until_ms) = state.unstorable[place];
        if known == hash && now_ms() < until_ms {
            return Role::Alone;
        }
        if let Some(flight) = state.flights.get(key) {
            return Role::Follower(flight.clone());
        }
        let flight = Arc::new(Flight { followers: Mutex::new(Some(Vec::new())) });
        state.flights.insert(key.clone(), flight.clone());
        Role::Leader(Leader { single_flight: self.clone(), key: key.clone(), flight })
    }

    /// The number of requests that wait for another one.
    pub fn waiting(&self) -> usize {
        let state = self.state();
        let followers = |flight: &Arc<Flight>| flight.followers().as_ref().map_or(0, Vec::len);
        state.flights.values().map(followers).sum()
    }

    fn place(&self, key: &Key) -> (u64, usize) {
        let hash = self.hasher.hash_one(key);
        (hash, hash as usize % UNSTORABLE_PLACES)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Waits for its end.
    pub fn poll_over(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut followers = self.followers();
        let Some(followers) = &mut *followers else { return Poll::Ready(()) };
        let waker = context.waker();
        // Of clones only the data is certainly the same (Waker::will_wake).
        if !followers.iter().any(|other| other.data() == waker.data()) {
            followers.push(waker.clone());
        }
        Poll::Pending
    }

    fn followers(&self) -> MutexGuard<'_, Option<Vec<Waker>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to render a page for all that wait for it.
#[derive(Debug)]
pub struct Leader {
    single_flight: Arc<SingleFlight>,
    key: Key,
    flight: Arc<Flight>,
}

impl Leader {
    /// Ends the flight of a page that is not stored: the next requests do not wait for each other.
    pub fn give_up(self) {
        let (hash, place) = self.single_flight.place(&self.key);
        self.single_flight.state().unstorable[place] = (hash, now_ms() + UNSTORABLE_MS);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.single_flight.state().flights.remove(&self.key);
        let followers = self.flight.followers().take();
        followers.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{key, until};
    use outboard_reactor::{run, spawn};
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn lead(flights: &Arc<SingleFlight>, path: &str) -> Leader {
        match flights.join(&key(path)) {
            Role::Leader(leader) => leader,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn one_request_leads_and_the_others_wait_for_its_end() {
        run(async {
            let flights = Arc::new(SingleFlight::default());
            let leader = lead(&flights, "/");
            let woken = Rc::new(Cell::new(0));
            for _ in 0..3 {
                let Role::Follower(flight) = flights.join(&key("/")) else { panic!("two leaders") };
                let woken = woken.clone();
                spawn(async move {
                    poll_fn(|context| flight.poll_over(context)).await;
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
            let flights = Arc::new(SingleFlight::default());
            lead(&flights, "/").give_up();
            assert!(matches!(flights.join(&key("/")), Role::Alone));
            drop(lead(&flights, "/other"));
        })
        .unwrap();
    }

    #[test]
    fn a_page_is_rendered_once_for_all_loops() {
        let flights = Arc::new(SingleFlight::default());
        let (joined, led) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let of_shard = || {
            let (flights, joined, led) = (flights.clone(), joined.clone(), led.clone());
            move || {
                run(async move {
                    let role = flights.join(&key("/"));
                    joined.fetch_add(1, Ordering::SeqCst);
                    match role {
                        Role::Leader(_leader) => {
                            led.fetch_add(1, Ordering::SeqCst);
                            until(|| joined.load(Ordering::SeqCst) == 3).await;
                            until(|| flights.waiting() == 2).await;
                        }
                        Role::Follower(flight) => {
                            poll_fn(|context| flight.poll_over(context)).await;
                        }
                        Role::Alone => panic!("every page is stored"),
                    }
                })
                .unwrap();
            }
        };
        let shards = [(); 3].map(|()| thread::spawn(of_shard()));
        shards.into_iter().for_each(|shard| shard.join().unwrap());
        assert_eq!((led.load(Ordering::SeqCst), flights.waiting()), (1, 0));
    }
}
