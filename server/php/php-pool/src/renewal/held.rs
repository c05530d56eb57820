//! [`HeldRequests`]: requests of one thread that wait for a new snapshot.
//!
//! Owned by the seat. Invariant: the freshness counts them for all threads.

use crate::exchange::{End, Exchange};
use crate::freshness::Freshness;
use outboard_log::Reason;
use outboard_reactor::{Event, now_ms, sleep};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A request that needs a newer snapshot.
#[derive(Debug)]
pub(super) struct Held {
    /// The number of the snapshot that it needs.
    pub(super) needed: u64,
    pub(super) exchange: Rc<Exchange>,
    pub(super) local_peer: Option<SocketAddr>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct HeldRequests {
    freshness: Arc<Freshness>,
    requests: RefCell<VecDeque<Held>>,
    /// Set when the first is held.
    has_some: Event,
}

impl HeldRequests {
    pub(super) fn new(freshness: Arc<Freshness>) -> Self {
        Self { freshness, requests: RefCell::default(), has_some: Event::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.borrow().is_empty()
    }

    pub(super) fn add(&self, held: Held) {
        self.requests.borrow_mut().push_back(held);
        self.freshness.held.fetch_add(1, Ordering::Relaxed);
        self.has_some.set();
    }

    /// Removes the requests that are meant.
    pub(super) fn take(&self, is_meant: impl Fn(&Held) -> bool) -> VecDeque<Held> {
        let all = self.requests.take().into_iter();
        let (taken, left): (VecDeque<Held>, VecDeque<Held>) = all.partition(is_meant);
        self.requests.replace(left);
        let counted = self.freshness.held.fetch_sub(taken.len(), Ordering::Relaxed);
        debug_assert!(counted >= taken.len(), "{} of {counted} requests are taken", taken.len());
        taken
    }

    /// Ends a wait of [`Self::expire`] for the first request.
    pub(super) fn wake(&self) {
        self.has_some.set();
    }

    /// Waits until the oldest request has waited for so long, and fails it; or for the first one.
    pub(super) async fn expire(&self, timeout_ms: u64) {
        let oldest_ms = self.requests.borrow().front().map(|held| held.exchange.submitted_ms);
        let Some(oldest_ms) = oldest_ms else { return self.has_some.wait().await };
        sleep((oldest_ms.saturating_add(timeout_ms)).saturating_sub(now_ms())).await;
        let now_ms = now_ms();
        let is_late = |held: &Held| now_ms >= held.exchange.submitted_ms.saturating_add(timeout_ms);
        for late in self.take(is_late) {
            late.exchange.finish(End::Failed(Reason::QueueTimeout));
        }
    }
}
