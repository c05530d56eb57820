//! Purges of one shard of this gateway on their way to the others.
//!
//! A purge is in effect here, for all shards, before it is sent. Invariant: it is sent again over the next connection
//! until the server confirms it, and then all connected gateways receive it.

use super::known_purges::{Pending, count};
use super::link::{Disconnected, Link};
use super::{SharedTier, UNEXPECTED, message};
use crate::purge::Selector;
use crate::store::PurgeEpoch;
use outboard_reactor::{current_task, now_ms, spawn, wake, with_deadline};
use outboard_resp::Value;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// The purges that wait for their confirmation at most; with one more they become one of everything.
pub(super) const UNCONFIRMED_MAX: usize = 1024;

/// A purge that is sent to all gateways.
#[derive(Debug)]
pub(super) struct Broadcast {
    text: Vec<u8>,
    _pending: Pending,
}

impl SharedTier {
    /// Sends a purge to all gateways that the caller puts in effect here before it next waits; `before`
    /// is the local epoch before that.
    pub(crate) fn broadcast(
        self: &Rc<Self>,
        selector: &Selector,
        is_soft: bool,
        before: PurgeEpoch,
    ) {
        let mut unconfirmed = self.unconfirmed.borrow_mut();
        let node = &self.known.node;
        let (text, before) = if unconfirmed.len() < UNCONFIRMED_MAX {
            (message::encoded(node, is_soft, selector), before)
        } else {
            // No caller waits for the confirmation of one of these.
            let oldest = self.known.numbered(before);
            unconfirmed.clear();
            (message::encoded(node, false, &Selector::All), oldest)
        };
        let broadcast = Rc::new(Broadcast { text, _pending: self.known.begin(before) });
        unconfirmed.push_back(broadcast.clone());
        drop(unconfirmed);
        if let Some(link) = self.link() {
            self.send(&link, broadcast);
        }
    }

    pub(super) fn send(self: &Rc<Self>, link: &Rc<Link>, broadcast: Rc<Broadcast>) {
        let reply = self.commands.purge(link, &self.epoch.borrow(), &broadcast.text);
        count(&self.known.counts.purges_sent);
        let (tier, link) = (self.clone(), Rc::downgrade(link));
        spawn(async move {
            match reply.wait().await {
                Ok(Value::Integer(_)) => tier.confirm(&broadcast),
                Ok(other) => {
                    let why = match &other {
                        Value::Error(why) => why,
                        _ => UNEXPECTED,
                    };
                    if let Some(link) = link.upgrade() {
                        link.disconnect(&format!("it rejects a purge: {why}"));
                    }
                }
                // It is sent again over the next connection.
                Err(Disconnected) => {}
            }
        });
    }

    fn confirm(&self, broadcast: &Rc<Broadcast>) {
        self.unconfirmed.borrow_mut().retain(|one| !Rc::ptr_eq(one, broadcast));
        self.wake_settling();
    }

    pub(super) fn wake_settling(&self) {
        self.settling.take().into_iter().for_each(wake);
    }

    /// Waits until the server has confirmed all purges so far; false if that takes too long, or the
    /// server is not available.
    pub(crate) async fn settle(&self) -> bool {
        let Some(last) = self.unconfirmed.borrow().back().cloned() else { return true };
        let settled = poll_fn(|_| {
            let is_left = self.unconfirmed.borrow().iter().any(|one| Rc::ptr_eq(one, &last));
            if !is_left || !self.is_available() {
                return Poll::Ready(!is_left);
            }
            self.settling.borrow_mut().push(current_task());
            Poll::Pending
        });
        let until_ms = now_ms() + self.configured.timeout_ms;
        with_deadline(until_ms, settled).await.unwrap_or(false)
    }
}
