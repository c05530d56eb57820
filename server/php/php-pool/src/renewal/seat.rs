//! [`PoolSeat`]: the pool that serves an app's requests on a thread, and its successor while the snapshot is
//! renewed.
//!
//! Called by the gateway wherever it needs the app's pool. A request that begins after the snapshot was retired
//! is held here until the successor serves. Invariants: a held request waits for no longer than one in the
//! pool's queue, and no more are held than may be queued; if the new snapshot cannot be started, the present one
//! goes on serving; a pool that is replaced finishes the requests that it has; the present one is ready for those that
//! are expected.

use super::held::{Held, HeldRequests};
use super::{LEAD, Renewal, Step, follow};
use crate::exchange::{End, Exchange};
use crate::freshness::Freshness;
use crate::pool::{PendingRequest, Pool, PoolShards, Shard};
use outboard_log::Reason;
use outboard_reactor::{now_ms, spawn};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Pools that have processes, so that the server can read their rings and wait for their ends.
pub type PoolList = Rc<RefCell<Vec<Rc<Pool>>>>;

/// Starts a pool with the same settings and operations.
type StartPool = Box<dyn Fn(Shard) -> Rc<Pool>>;

/// See the module.
#[derive(Debug)]
pub struct PoolSeat {
    present: RefCell<Rc<Pool>>,
    /// `None` if the pool is never replaced.
    renewing: Option<Renewing>,
}

/// What a seat has whose pool is replaced.
pub(super) struct Renewing {
    pub(super) shared: Arc<Renewal>,
    pub(super) thread: usize,
    start: StartPool,
    pools: RefCell<PoolList>,
    drain_timeout_ms: u64,
    /// The snapshot that serves: all that were wanted up to this number, or the starts that failed.
    settled: Cell<u64>,
    candidate: RefCell<Option<Rc<Pool>>>,
    /// Pools that were replaced.
    leaving: RefCell<Vec<Rc<Pool>>>,
    held: HeldRequests,
    /// Requests that may still be submitted, and what keeps the present pool ready for them. A pool that was
    /// replaced gets none of them, so it need not wait for them.
    expected: Cell<usize>,
    bridge: RefCell<Option<PendingRequest>>,
    /// When all processes have to end.
    pub(super) retire_by_ms: Cell<Option<u64>>,
}

impl Renewing {
    pub(super) fn freshness(&self) -> &Arc<Freshness> {
        self.shared.freshness()
    }

    /// The present pool is kept ready as long as a request is expected.
    fn check(&self) {
        debug_assert_eq!(self.bridge.borrow().is_some(), self.expected.get() > 0);
    }
}

impl fmt::Debug for Renewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewing").field("settled", &self.settled).finish_non_exhaustive()
    }
}

/// A request that may still be submitted.
#[derive(Debug)]
pub struct ExpectedRequest {
    seat: Rc<PoolSeat>,
    /// In a seat whose pool is never replaced.
    _pending: Option<PendingRequest>,
}

impl Drop for ExpectedRequest {
    fn drop(&mut self) {
        if let Some(renewing) = &self.seat.renewing {
            renewing.expected.update(|expected| expected - 1);
            if renewing.expected.get() == 0 {
                renewing.bridge.take();
            }
            renewing.check();
        }
    }
}

impl PoolSeat {
    /// A seat whose pool is never replaced.
    pub fn fixed(pool: Rc<Pool>) -> Rc<Self> {
        Rc::new(Self { present: RefCell::new(pool), renewing: None })
    }

    /// A seat whose pool is replaced when its snapshot is retired; `start` starts each successor.
    pub fn renewed(
        pool: Rc<Pool>,
        thread: usize,
        shared: Arc<Renewal>,
        drain_timeout_ms: u64,
        start: impl Fn(Shard) -> Rc<Pool> + 'static,
    ) -> Rc<Self> {
        let freshness = shared.freshness();
        pool.set_freshness(freshness.clone());
        if thread == LEAD {
            freshness.set_first(pool.id(), pool.settings().snapshot_max_age_ms);
        }
        let seat = Rc::new(Self {
            present: RefCell::new(pool),
            renewing: Some(Renewing {
                shared: shared.clone(),
                thread,
                start: Box::new(start),
                pools: RefCell::default(),
                drain_timeout_ms,
                settled: Cell::new(0),
                candidate: RefCell::default(),
                leaving: RefCell::default(),
                held: HeldRequests::new(freshness.clone()),
                expected: Cell::new(0),
                bridge: RefCell::default(),
                retire_by_ms: Cell::new(None),
            }),
        });
        if let Some(steps) = shared.receiver(thread) {
            spawn(follow(seat.clone(), steps));
            spawn(expire(seat.clone()));
        }
        seat
    }

    /// The pool that serves now.
    pub fn pool(&self) -> Rc<Pool> {
        self.present.borrow().clone()
    }

    /// The state that all threads share, if its pool is replaced.
    pub fn freshness(&self) -> Option<&Arc<Freshness>> {
        self.renewing.as_ref().map(Renewing::freshness)
    }

    /// Whether its pool serves, and from a snapshot of what is there now, as far as that can be proved. A snapshot whose
    /// successor has failed is out of date.
    pub fn is_up_to_date(&self) -> bool {
        let is_fresh = self.renewing.as_ref().is_none_or(|renewing| {
            let freshness = renewing.freshness();
            freshness.wanted() <= renewing.settled.get() && !freshness.may_be_old()
        });
        is_fresh && self.present.borrow().is_serving()
    }

    /// Sets the list that pools join which are started later.
    pub fn list_pools_in(&self, pools: &PoolList) {
        if let Some(renewing) = &self.renewing {
            renewing.pools.replace(pools.clone());
        }
    }

    /// As [`Pool::submit`], but a request that needs a newer snapshot waits for it.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub fn submit(
        &self,
        exchange: Rc<Exchange>,
        local_peer: Option<SocketAddr>,
    ) -> Result<(), Reason> {
        let Some(renewing) = &self.renewing else {
            return self.present.borrow().submit(exchange, local_peer);
        };
        let needed = renewing.freshness().wanted();
        if needed <= renewing.settled.get() && renewing.freshness().is_watching() {
            return self.pool().submit(exchange, local_peer);
        }
        let limit = self.present.borrow().settings().queue_length;
        if renewing.freshness().held() >= limit {
            return Err(Reason::QueueFull);
        }
        renewing.held.add(Held { needed, exchange, local_peer });
        Ok(())
    }

    /// As [`Pool::abandon`].
    pub fn abandon(&self, exchange: &Rc<Exchange>) {
        let Some(renewing) = &self.renewing else {
            return self.present.borrow().abandon(exchange);
        };
        if !renewing.held.take(|held| Rc::ptr_eq(&held.exchange, exchange)).is_empty() {
            return exchange.abandon();
        }
        // It is in one of the pools, and the others do not know it.
        self.pool().abandon(exchange);
        let leaving = renewing.leaving.borrow().clone();
        leaving.iter().for_each(|pool| pool.abandon(exchange));
    }

    /// As [`Pool::expect_request`].
    pub fn expect_request(self: &Rc<Self>) -> ExpectedRequest {
        let pending = || self.pool().expect_request();
        let Some(renewing) = &self.renewing else {
            return ExpectedRequest { seat: self.clone(), _pending: Some(pending()) };
        };
        renewing.expected.update(|expected| expected + 1);
        renewing.bridge.borrow_mut().get_or_insert_with(pending);
        renewing.check();
        ExpectedRequest { seat: self.clone(), _pending: None }
    }

    /// As [`Pool::retire`]. Held requests still get a new snapshot.
    pub fn retire(&self, drain_timeout_ms: u64) {
        if let Some(renewing) = &self.renewing {
            renewing.retire_by_ms.set(Some(now_ms() + drain_timeout_ms));
            renewing.held.wake();
            renewing.shared.send(renewing.thread, Step::Retired);
            renewing.freshness().wake_lead();
            if renewing.held.is_empty()
                && let Some(candidate) = renewing.candidate.take()
            {
                candidate.retire(0);
            }
        }
        self.pool().retire(drain_timeout_ms);
    }

    /// Starts a candidate for the place of the present pool.
    pub(super) fn prepare(&self, shards: &Arc<PoolShards>) -> Option<Rc<Pool>> {
        let renewing = self.renewing.as_ref()?;
        let pool = (renewing.start)(shards.place(renewing.thread));
        pool.set_freshness(renewing.freshness().clone());
        renewing.pools.borrow().borrow_mut().push(pool.clone());
        if let Some(earlier) = renewing.candidate.replace(Some(pool.clone())) {
            earlier.retire(0);
        }
        Some(pool)
    }

    /// The snapshots up to this number are settled: by the candidate, which serves from now on, or by the
    /// present pool, if the start has failed.
    pub(super) fn settle(&self, number: u64, has_succeeded: bool) {
        let Some(renewing) = &self.renewing else { return };
        let candidate = renewing.candidate.take();
        match candidate {
            Some(candidate) if has_succeeded => self.replace(renewing, candidate),
            Some(candidate) => candidate.retire(0),
            None => {}
        }
        renewing.settled.set(renewing.settled.get().max(number));
        self.release(renewing);
        if let Some(by_ms) = renewing.retire_by_ms.get() {
            self.pool().retire(by_ms.saturating_sub(now_ms()));
        }
    }

    /// The files of the present snapshot are watched.
    pub(super) fn watched(&self) {
        if let Some(renewing) = &self.renewing {
            self.release(renewing);
        }
    }

    fn replace(&self, renewing: &Renewing, candidate: Rc<Pool>) {
        let old = self.present.replace(candidate.clone());
        candidate.continue_counts(&old);
        if renewing.expected.get() > 0 {
            renewing.bridge.replace(Some(candidate.expect_request()));
        }
        renewing.check();
        old.retire(renewing.drain_timeout_ms);
        self.leaving();
        renewing.leaving.borrow_mut().push(old);
        renewing.pools.borrow().borrow_mut().retain(|pool| !pool.is_gone());
    }

    /// Submits the requests that need nothing newer.
    fn release(&self, renewing: &Renewing) {
        let settled = renewing.settled.get();
        for held in renewing.held.take(|held| held.needed <= settled) {
            if held.exchange.has_ended() {
                continue;
            }
            if let Err(reason) = self.pool().submit(held.exchange.clone(), held.local_peer) {
                held.exchange.finish(End::Failed(reason));
            }
        }
    }

    /// The number of pools that were replaced and have processes.
    pub(super) fn leaving(&self) -> usize {
        let Some(renewing) = &self.renewing else { return 0 };
        let mut leaving = renewing.leaving.borrow_mut();
        leaving.retain(|pool| !pool.is_gone());
        leaving.len()
    }

    /// The pool that is being started.
    pub(super) fn candidate(&self) -> Option<u64> {
        self.renewing.as_ref()?.candidate.borrow().as_ref().map(|pool| pool.id())
    }

    pub(super) fn renewing(&self) -> Option<&Renewing> {
        self.renewing.as_ref()
    }
}

/// Fails requests that were held for too long.
async fn expire(seat: Rc<PoolSeat>) {
    let Some(renewing) = &seat.renewing else { return };
    while renewing.retire_by_ms.get().is_none() || !renewing.held.is_empty() {
        renewing.held.expire(seat.pool().settings().queue_timeout_ms).await;
    }
}
