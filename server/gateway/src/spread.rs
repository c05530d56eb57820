//! [`Spread`]: over how many threads connections are spread, and [`SpreadPlace`]: a thread's part in it.
//!
//! Few requests a second cost least on one thread, which finds several when it wakes, and is warm; many need all. So the
//! first threads serve, as many as the load needs, and the others rest: the kernel gives them no new connections without
//! TLS, and those that they have move after their next response. Called for each response. Invariants: nothing happens
//! without requests; a decision is taken by whichever thread looks first, and all follow; a thread that rests serves what
//! it has.

mod policy;

use crate::gateway::Gateway;
use outboard_log::Level;
use outboard_reactor::now_ms;
use outboard_supervisor::thread_times::ThreadTimes;
pub(crate) use policy::Spread;
use policy::{LOOK_MS, Look};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
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

    /// Looks, a few times a second, whether the load needs another number of threads.
    pub(crate) fn look(&self, gateway: &Gateway) {
        let now_ms = now_ms();
        if self.spread.count() == 1 || now_ms < self.looked_ms.get() + LOOK_MS {
            return;
        }
        let elapsed_ms = now_ms - self.looked_ms.replace(now_ms);
        let mut times = self.times.borrow_mut();
        if times.is_none() {
            // The first look finds what has been until now, and decides nothing.
            *times = ThreadTimes::of_this_thread();
            return;
        }
        let Some(times) = times.as_mut().and_then(ThreadTimes::advance) else { return };
        let responded = self.responded.replace(0);
        let look = Look { index: self.index, now_ms, elapsed_ms, times, responded };
        self.to_move.set(self.spread.decide(&look));
        self.steer(gateway);
    }

    /// Tells the kernel among how many threads to distribute new connections, if it was told something else. Any thread can.
    pub(crate) fn steer(&self, gateway: &Gateway) {
        let Some(active) = self.spread.to_steer() else { return };
        for bound in gateway.listeners.borrow().iter() {
            if let Err(error) = bound.steer(u32::try_from(active).unwrap_or(u32::MAX)) {
                let text = format!("{}: connections are not steered: {error}", bound.name());
                gateway.server.log(Level::Debug, &text);
            }
        }
    }

    /// The listeners are others than before.
    pub(crate) fn steer_again(&self, gateway: &Gateway) {
        self.spread.forget_steered();
        self.steer(gateway);
    }
}

/// Sends a connection to another thread.
pub(crate) fn send(
    gateway: &Rc<Gateway>,
    shard: usize,
    connection: outboard_http_server::MovedConnection,
) {
    let Some(handle) = gateway.shards.other(shard) else {
        debug_assert!(false, "there is no thread {shard} beside {}", gateway.share.index);
        return;
    };
    // Nobody waits for it: if the thread has ended, so does the connection.
    drop(handle.run(|gateway| async move {
        if let Err(error) = connection.serve(&gateway) {
            gateway.server.log(Level::Error, &format!("cannot watch a connection: {error}"));
        }
    }));
}
