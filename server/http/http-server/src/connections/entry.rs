//! [`Entry`]: an open connection or stream, as its task has it, and [`MovedEntry`]: the same between two shards.
//!
//! Opened by [`super::Connections`]. Invariant: what an entry counts as is released when it is dropped.

use super::Connections;
use super::table::State;
use crate::census::{Census, Place};
use outboard_buffer::{Account, Held};
use outboard_config::Limits;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// An open connection or stream, until this is dropped.
#[derive(Debug)]
pub struct Entry {
    pub(super) connections: Rc<Connections>,
    pub(super) key: usize,
    pub(super) held: Option<Held>,
    /// Among the connections of its listener, if that has limits of its own.
    pub(super) place: Option<Place>,
}

impl Entry {
    /// Its listener counts it no more, because it is to be counted by another address.
    pub(crate) fn leave_listener(&mut self) {
        self.place = None;
    }

    /// Its memory, which is counted until the entry is dropped.
    pub(crate) fn hold(&mut self, held: Held) {
        self.held = Some(held);
    }

    /// The connection waits for a request in the current task, and may be asked to close.
    pub fn set_idle(&self) {
        self.connections.set_idle(self.key);
    }

    /// Whether it is asked to close.
    pub fn must_close(&self) -> bool {
        self.connections.table.borrow().open[self.key].state == State::Closing
    }

    /// A request is processed.
    pub fn set_busy(&self) {
        self.connections.set_busy(self.key);
    }

    /// Runs work in which the client may be idle; `None` if it is asked to close meanwhile.
    pub(crate) async fn while_idle<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let done = poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            self.set_idle();
            if self.must_close() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        if done.is_some() {
            self.set_busy();
        }
        done
    }
}

impl Entry {
    /// Takes the entry of a connection from this shard.
    pub(crate) fn into_moved(mut self) -> MovedEntry {
        let address = self.connections.address_of(self.key);
        let held_bytes = self.held.as_ref().map(Held::bytes);
        let census = self.connections.census.clone();
        // Beside this one, which is dropped here.
        census.opened();
        MovedEntry { census: Some(census), place: self.place.take(), address, held_bytes }
    }
}

/// The entry of a connection that is on its way to another shard, where it counts already.
#[derive(Debug)]
pub(crate) struct MovedEntry {
    /// Where it is counted, until it has arrived.
    census: Option<Arc<Census>>,
    place: Option<Place>,
    address: Option<IpAddr>,
    held_bytes: Option<usize>,
}

impl MovedEntry {
    /// The entry on the shard where it has arrived. No limit applies: it was admitted long ago.
    pub(crate) fn enter(
        mut self,
        connections: &Rc<Connections>,
        limits: &Limits,
        account: &Rc<Account>,
    ) -> Entry {
        let mut entry = connections.open_moved(self.address, limits);
        entry.place = self.place.take();
        entry.held = self.held_bytes.map(|bytes| account.hold(bytes));
        self.census = None;
        entry
    }
}

impl Drop for MovedEntry {
    fn drop(&mut self) {
        self.census.iter().for_each(|census| census.closed());
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // What waits for room may be short of memory as well.
        self.held.take();
        self.connections.close(self.key);
    }
}
