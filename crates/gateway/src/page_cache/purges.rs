//! Purges that PHP asks for: `Outboard\cache_purge()`.
//!
//! Stands before an app's other operations; the pool hands it what workers ask for. Invariant: the
//! completion is sent when no cache that a request may still be answered from has what was purged,
//! neither that of the worker's own generation nor its successor's.

use super::PageCache;
use crate::pool::operations::{Asker, Operations, WorkerId};
use outboard_page_cache::Selector;
use outboard_reactor::spawn;
use outboard_ring::operation::{Call, Completion, Operation, Part};
use outboard_ring::purge::{PurgeCall, Selected};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Purges {
    cache: Option<Rc<PageCache>>,
    others: Rc<dyn Operations>,
}

impl Purges {
    /// Purges for an app that keeps its answers in `cache`, and its other operations.
    pub(crate) fn before(others: Rc<dyn Operations>, cache: Option<Rc<PageCache>>) -> Rc<Self> {
        Rc::new(Self { cache, others })
    }
}

impl Operations for Purges {
    fn begin(&self, asker: Asker, payload: &[u8]) {
        let Ok(Operation { id, call: Call::Purge(call) }) = Operation::decode(payload) else {
            return self.others.begin(asker, payload);
        };
        let purged = self.cache.as_ref().map_or(0, |cache| cache.purge_called(&call));
        let part = Part::Purged(u32::try_from(purged).unwrap_or(u32::MAX));
        let completion = Completion { id, part };
        // A worker that has gone waits for nothing.
        let complete = move || asker.send(&completion).unwrap_or_default();
        match self.cache.clone().filter(|cache| cache.is_shared()) {
            None => complete(),
            Some(cache) => spawn(async move {
                cache.settle_called().await;
                complete();
            }),
        }
    }

    fn forget(&self, worker: WorkerId) {
        self.others.forget(worker);
    }
}

impl PageCache {
    /// Says which cache the app has from now on.
    pub(crate) fn succeeded_by(&self, successor: &Rc<Self>) {
        self.successor.replace(Rc::downgrade(successor));
        if let Some(disk) = &self.disk {
            disk.give_up();
        }
        // What is shared was made by the release of before.
        if let Some(commons) = &successor.commons {
            commons.broadcast(&Selector::All, true);
        }
    }

    fn is_shared(&self) -> bool {
        self.commons.is_some()
    }

    /// Waits for what [`Self::purge_called`] tells others.
    async fn settle_called(&self) {
        let successor = self.successor.borrow().upgrade();
        match successor {
            Some(successor) => Box::pin(successor.settle_called()).await,
            None => drop(self.settle().await),
        }
    }

    fn purge_called(&self, call: &PurgeCall<'_>) -> usize {
        let own: usize =
            self.selectors(call).into_iter().map(|one| self.purge_now(one, call.is_soft)).sum();
        let successor = self.successor.borrow().upgrade();
        own + successor.map_or(0, |successor| successor.purge_called(call))
    }

    fn selectors(&self, call: &PurgeCall<'_>) -> Vec<Selector> {
        let mut selectors = Vec::with_capacity(call.selected.len() + 1);
        let mut tags = Vec::new();
        for selected in &call.selected {
            match *selected {
                Selected::Url(url) => selectors.extend(both_schemes(url, Selector::url)),
                Selected::Prefix(url) => selectors.extend(both_schemes(url, Selector::prefix)),
                Selected::Tag(tag) => tags.push(tag),
                Selected::All => selectors.push(Selector::All),
            }
        }
        if !tags.is_empty() {
            selectors.push(Selector::tags(tags));
        }
        selectors
    }
}

/// An application knows its pages by one scheme; which one a page was asked for by is decided in
/// front of it.
fn both_schemes(url: &[u8], select: impl Fn(&[u8]) -> Selector) -> Vec<Selector> {
    let after = |scheme: &[u8]| url.strip_prefix(scheme);
    match after(b"https://").or(after(b"http://")) {
        Some(rest) => {
            [&b"http://"[..], b"https://"].map(|scheme| select(&[scheme, rest].concat())).into()
        }
        None => vec![select(url)],
    }
}
