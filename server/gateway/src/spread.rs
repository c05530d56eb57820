//! [`Spread`]: over how many threads connections are spread, and [`SpreadPlace`]: a thread's part in it.
//!
//! Few requests a second cost least on one thread, which finds several when it wakes, and is warm; many need all. So the
//! first threads serve, as many as the load needs, and the others rest: the kernel gives them no new connections without
//! TLS, and those that they have move after their next response. Called for each response. Invariants: nothing happens
//! without requests; a decision is taken by whichever thread looks first, and all follow; a thread that rests serves what
//! it has.

mod policy;

use outboard_reactor::now_ms;
use outboard_supervisor::thread_times::ThreadTimes;
pub(crate) use policy::Spread;
use policy::{LOOK_MS, Look};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct SpreadPlace {
    spread: Arc<Spread>,
    index: usize,
    times: RefCell<Option<ThreadTimes>>,
    /// At the last look.
    looked_ms: Cell<u64>,
    /// Connections that had a response since then, and how many may leave.
    responded: Cell<u32>,
    to_move: Cell<u32>,
    /// Counts the shards for connections that stay.
    turn: Cell<usize>,
}

impl SpreadPlace {
    pub(crate) fn new(spread: Arc<Spread>, index: usize) -> Self {
        Self {
            spread,
            index,
            times: RefCell::default(),
            looked_ms: Cell::default(),
            responded: Cell::default(),
            to_move: Cell::default(),
            turn: Cell::new(index),
        }
    }

    /// See [`Spread::set_gathers`].
    pub(crate) fn set_gathers(&self, gathers: bool) {
        self.spread.set_gathers(gathers);
    }

    /// The number of threads that the kernel is to be told, unless it was; the caller tells it.
    pub(crate) fn to_steer(&self) -> Option<usize> {
        self.spread.to_steer()
    }

    /// The kernel has to be told again.
    pub(crate) fn forget_steered(&self) {
        self.spread.forget_steered();
    }

    /// How many threads new connections are spread over.
    pub(crate) fn active(&self) -> usize {
        self.spread.active()
    }

    /// The thread where a connection waits for its next request; `None`: here.
    pub(crate) fn after_response(&self, seen: &Cell<u64>) -> Option<usize> {
        let looked_ms = self.looked_ms.get();
        if seen.replace(looked_ms) != looked_ms {
            self.responded.set(self.responded.get() + 1);
        }
        if self.index < self.spread.active() {
            self.to_move.set(self.to_move.get().checked_sub(1)?);
        }
        self.spread.calmest_beside(self.index, now_ms())
    }

    /// The thread for a connection that stays there: each in its turn.
    pub(crate) fn to_stay(&self) -> Option<usize> {
        let count = self.spread.count();
        if self.spread.active() == count {
            return None;
        }
        let turn = (self.turn.get() + 1) % count;
        self.turn.set(turn);
        Some(turn).filter(|turn| *turn != self.index)
    }

    /// Looks, a few times a second, whether the load needs another number of threads; whether it has looked.
    pub(crate) fn look(&self) -> bool {
        let now_ms = now_ms();
        if self.spread.count() == 1 || now_ms < self.looked_ms.get() + LOOK_MS {
            return false;
        }
        let elapsed_ms = now_ms - self.looked_ms.replace(now_ms);
        let mut times = self.times.borrow_mut();
        if times.is_none() {
            // The first look finds what has been until now, and decides nothing.
            *times = ThreadTimes::of_this_thread();
            if times.is_some() {
                return false;
            }
        }
        let Some(times) = times.as_mut().and_then(ThreadTimes::advance) else {
            // A load that is not known may be high.
            self.spread.set_gathers(false);
            return true;
        };
        let responded = self.responded.replace(0);
        let look = Look { index: self.index, now_ms, elapsed_ms, times, responded };
        self.to_move.set(self.spread.decide(&look));
        true
    }
}
