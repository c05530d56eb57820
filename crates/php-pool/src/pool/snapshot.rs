//! What a pool tells and knows of its snapshot: the memory of a booted script, of which its workers are forks.
//!
//! Called by the manager for the zygote's report, and by the [seat](crate::freshness::seat) of the pool.

use super::{Phase, Pool};
use crate::freshness::{BootRead, Freshness};
use outboard_admin_api::status as api;
use outboard_log::Level;
use std::rc::Rc;
use std::sync::Arc;

impl Pool {
    /// Unique in this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The maximum number of queued requests.
    pub(crate) fn queue_length(&self) -> usize {
        self.settings.queue_length
    }

    /// The longest time in the queue.
    pub(crate) fn queue_timeout_ms(&self) -> u64 {
        self.settings.queue_timeout_ms
    }

    /// The longest time of PHP's start.
    pub(crate) fn start_timeout_ms(&self) -> u64 {
        self.settings.start_timeout_ms
    }

    /// The maximum age of a snapshot.
    pub(crate) fn snapshot_max_age_ms(&self) -> u64 {
        self.settings.snapshot_max_age_ms
    }

    /// Logs an event of the app.
    pub(crate) fn log_note(&self, level: Level, text: &str) {
        self.log(level, text);
    }

    /// Sets whom it tells what the start of its script has read.
    pub(crate) fn set_freshness(&self, freshness: Arc<Freshness>) {
        self.freshness.replace(Some(freshness));
    }

    /// Goes on counting where the pool ended that it replaces.
    pub(crate) fn continue_counts(&self, before: &Rc<Self>) {
        let earlier = before.counters.take();
        let mut counters = self.counters.borrow_mut();
        counters.requests += earlier.requests;
        counters.queued += earlier.queued;
        counters.rejected += earlier.rejected;
        counters.crashes += earlier.crashes;
        counters.deadlines += earlier.deadlines;
        counters.recycled += earlier.recycled;
        counters.forks += earlier.forks;
        for (sum, more) in counters.waits.iter_mut().zip(earlier.waits) {
            super::manager::add_waits(sum, more);
        }
    }

    /// The zygote has reported what the start of the script has read.
    pub(super) fn boot_read(&self, keys: Vec<String>, is_complete: bool, max_age_s: u64) {
        let freshness = self.freshness.borrow().clone();
        let Some(freshness) = freshness else { return };
        let descriptors = self.zygote.borrow().as_ref().map(|zygote| zygote.take_descriptors());
        if !is_complete {
            let text = "the start of the script reads more files than can be watched: changes of some are \
                        not noticed";
            self.log(Level::Warn, text);
        }
        let list = descriptors.and_then(|mut descriptors| descriptors.pop());
        let keys = keys.into_iter().collect();
        let is_blind = !is_complete || list.is_none();
        let max_age_ms = Some(max_age_s.saturating_mul(1_000)).filter(|age| *age > 0);
        freshness
            .booted(self.id, BootRead { keys, list, is_blind, max_age_ms, ..BootRead::default() });
    }

    pub(super) fn snapshot_status(&self) -> Option<api::Snapshot> {
        let is_current = matches!(self.phase.get(), Phase::Starting | Phase::Serving);
        let freshness = self.freshness.borrow();
        freshness.as_ref().filter(|_| is_current).map(|freshness| freshness.status())
    }
}
