//! Purges of a page cache: of all its tiers, generations and gateways, and of the other process of an upgrade.
//!
//! Invariant: when a call returns, no shard serves a page that it selects ([`crate::pages`]); other
//! gateways do not once [`PageCache::settle`] confirms that.

use super::PageCache;
use crate::key::Key;
use crate::purge::Selector;
use crate::shared_tier::LocalTiers;
use std::rc::Rc;

impl PageCache {
    /// Purges one URL.
    pub fn purge_url(&self, key: &Key) {
        self.purge(Selector::Url(key.bytes().to_vec()), false);
    }

    /// Purges, here and in the shared tier; returns the number of entries that memory had.
    pub fn purge(&self, selector: Selector, is_soft: bool) -> usize {
        if self.successor().is_none() {
            self.broadcast(&selector, is_soft);
        }
        self.pages.purge_older(&selector, is_soft);
        self.pages.purge(&selector, is_soft)
    }

    /// Sends a purge to the other gateways, before it is in effect here.
    fn broadcast(&self, selector: &Selector, is_soft: bool) {
        if let Some(shared) = &self.shared {
            shared.broadcast(selector, is_soft, self.purge_epoch());
        }
    }

    /// Purges, also in the caches of later generations: their workers do not know of it.
    pub fn purge_with_successors(&self, selectors: &[Selector], is_soft: bool) -> usize {
        let mut latest = self.successor();
        while let Some(next) = latest.as_ref().and_then(|cache| cache.successor()) {
            latest = Some(next);
        }
        let purge = |selector: &Selector| {
            if let Some(latest) = &latest {
                latest.broadcast(selector, is_soft);
            }
            self.purge(selector.clone(), is_soft) + self.pages.purge_newer(selector, is_soft)
        };
        selectors.iter().map(purge).sum()
    }

    /// Passes purges on to another process, of all shards.
    pub fn set_outside(&self, send: impl Fn(&Selector, bool) + Send + Sync + 'static) {
        self.pages.set_outside(send);
    }

    /// A purge that another process has passed on; it has sent it to other gateways.
    pub fn purge_from_outside(&self, selector: &Selector, is_soft: bool) {
        self.pages.purge_from_outside(selector, is_soft);
    }

    /// Waits until the server of the shared tier has confirmed all purges so far, those of
    /// [`Self::purge_with_successors`] included; false if it has not yet.
    pub async fn settle(&self) -> bool {
        let is_confirmed = match &self.shared {
            Some(shared) => shared.settle().await,
            None => true,
        };
        match self.successor() {
            Some(successor) => Box::pin(successor.settle()).await && is_confirmed,
            None => is_confirmed,
        }
    }

    /// Sets this shard's cache of the app's next generation.
    pub fn set_successor(&self, successor: &Rc<Self>) {
        self.successor.replace(Rc::downgrade(successor));
        if self.pages.set_successor(&successor.pages) {
            // The old release rendered the shared pages.
            successor.broadcast(&Selector::All, true);
        }
    }

    fn successor(&self) -> Option<Rc<Self>> {
        self.successor.borrow().upgrade()
    }
}

impl LocalTiers for PageCache {
    fn purge_locally(&self, selector: Selector, is_soft: bool) {
        self.pages.purge(&selector, is_soft);
    }
}
