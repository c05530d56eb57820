//! Codings of stored pages, made one page after the other on a thread beside the I/O thread.
//!
//! Called when a page was stored. Invariants: a hit never waits for a coding; at most one page is
//! worked on, so that compression takes one processor at the most; pages that live too shortly to
//! repay the work are left alone.

use super::PageCache;
use outboard_http_semantics::Coding;
use outboard_page_cache::{Entry, Found, PurgeEpoch, Shared, compressed};
use outboard_reactor::{blocking, spawn};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// More pages than this do not wait; they are sent as they are.
const WAITING_MAX: usize = 256;

/// The pages that wait for their codings.
#[derive(Debug, Default)]
pub(super) struct Compressor {
    /// With the moment since which a purge is about them.
    waiting: RefCell<VecDeque<(Shared, PurgeEpoch)>>,
    works: Cell<bool>,
}

impl PageCache {
    /// Has the codings of a page made, if they are worth it, and has it written to disk.
    pub(super) fn compress(self: &Rc<Self>, entry: &Shared) {
        let mut waiting = self.compressor.waiting.borrow_mut();
        if !entry.may_compress() || waiting.len() >= WAITING_MAX {
            return self.shelve(entry);
        }
        waiting.push_back((entry.clone(), self.store.borrow().purge_epoch()));
        if !self.compressor.works.replace(true) {
            spawn(work(self.clone()));
        }
    }
}

impl PageCache {
    /// Whether memory has let go of an entry for want of room alone.
    fn was_evicted(&self, entry: &Entry, since: PurgeEpoch) -> bool {
        let mut store = self.store.borrow_mut();
        let other = store.find(entry.key(), |one| one.variant() == entry.variant());
        !matches!(other, Found::Entry(_)) && !store.was_purged(since, entry)
    }
}

async fn work(cache: Rc<PageCache>) {
    loop {
        let next = cache.compressor.waiting.borrow_mut().pop_front();
        let Some((entry, since)) = next else { break };
        let body = entry.plain().body.clone();
        let made =
            blocking(move || Coding::ALL.map(|coding| Some((coding, compressed(coding, &body)?))));
        let codings = made.await;
        let coded =
            codings.into_iter().flatten().fold((*entry).clone(), |entry, (coding, body)| {
                entry.with_coding(coding, Arc::from(body))
            });
        let replaced = cache.store.borrow_mut().replace(&entry, coded.clone());
        match replaced {
            Some(entry) => cache.shelve(&entry),
            None if cache.was_evicted(&coded, since) => cache.shelve(&coded.into()),
            // Purged or replaced meanwhile.
            None => {}
        }
    }
    cache.compressor.works.set(false);
}
