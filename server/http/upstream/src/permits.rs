//! [`Permits`]: a limited number of permits, and the tasks of all threads that wait for one.
//!
//! Behind the locks of [`crate::origin_limits`] and [`crate::sockets`]. Invariants: permits are granted in
//! the order of waiting; a permit is free only while no task waits; a place that is no longer in the queue
//! has been granted a permit, which its owner takes or returns.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

/// See the module.
#[derive(Debug)]
pub(crate) struct Permits {
    most: usize,
    taken: usize,
    /// Ordered by place.
    waiting: VecDeque<Waiter>,
    next_place: u64,
}

#[derive(Debug)]
struct Waiter {
    place: u64,
    waker: Waker,
}

impl Permits {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: 0, waiting: VecDeque::new(), next_place: 0 }
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// The number of places in the queue.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a permit if one is free.
    pub(crate) fn try_take(&mut self) -> bool {
        let is_free = self.taken < self.most;
        self.taken += usize::from(is_free);
        is_free
    }

    /// Joins the queue; a free permit is granted at once. [`Self::poll`] names the task that is woken,
    /// [`Self::leave`] gives the place up.
    pub(crate) fn join(&mut self) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        if !self.try_take() {
            self.waiting.push_back(Waiter { place, waker: Waker::noop().clone() });
        }
        place
    }

    /// Ready once the place has been granted a permit.
    pub(crate) fn poll(&mut self, place: u64, waker: &Waker) -> Poll<()> {
        let Some(at) = self.position(place) else { return Poll::Ready(()) };
        self.waiting[at].waker.clone_from(waker);
        Poll::Pending
    }

    /// Returns a permit. If a task has been granted it, the caller wakes it without the lock.
    #[must_use]
    pub(crate) fn release(&mut self) -> Option<Waker> {
        let first = self.waiting.pop_front();
        self.taken -= usize::from(first.is_none());
        Some(first?.waker)
    }

    /// Gives a place up, and returns a permit that it was granted meanwhile.
    #[must_use]
    pub(crate) fn leave(&mut self, place: u64) -> Option<Waker> {
        match self.position(place) {
            Some(at) => {
                self.waiting.remove(at);
                None
            }
            None => self.release(),
        }
    }

    /// The tasks that have waited shortest.
    pub(crate) fn last(&self, count: usize) -> Vec<Waker> {
        self.waiting.iter().rev().take(count).map(|waiter| waiter.waker.clone()).collect()
    }

    fn position(&self, place: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&place, |waiter| waiter.place).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_granted(permits: &mut Permits, place: u64) -> bool {
        permits.poll(place, Waker::noop()).is_ready()
    }

    #[test]
    fn a_free_permit_goes_to_the_first_place() {
        let mut permits = Permits::new(1);
        assert!(permits.try_take() && !permits.try_take());
        let (first, second) = (permits.join(), permits.join());
        assert!(!is_granted(&mut permits, first));
        assert!(permits.release().is_some());
        assert!(is_granted(&mut permits, first) && !is_granted(&mut permits, second));
        assert!(!permits.try_take(), "nobody overtakes");
        assert!(permits.release().is_some());
        assert!(is_granted(&mut permits, second));
        assert!(permits.release().is_none());
        let last = permits.join();
        assert!(is_granted(&mut permits, last) && !permits.try_take(), "one was free");
    }

    #[test]
    fn a_place_that_is_given_up_keeps_no_permit() {
        let mut permits = Permits::new(1);
        assert!(permits.try_take());
        let places = [permits.join(), permits.join(), permits.join()];
        assert!(permits.leave(places[1]).is_none());
        assert_eq!(permits.waiting(), 2);
        assert!(permits.release().is_some());
        assert!(permits.leave(places[0]).is_some(), "it had been granted one");
        assert!(is_granted(&mut permits, places[2]));
        assert!(permits.leave(places[2]).is_none());
        assert!(permits.try_take());
    }
}
