//! [`Table`]: the open connections and streams of a shard, by client address.
//!
//! Owned by [`super::Connections`]. Invariant: an entry is in the lists of idle ones exactly while it is idle.

use super::idle_list::{IdleList, Links};
use crate::census::Address;
use outboard_buffer::Lease;
use outboard_reactor::{TaskId, wake};
use slab::Slab;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) open: Slab<Open>,
    pub(super) holders: Slab<Holder>,
    pub(super) by_address: HashMap<IpAddr, usize>,
    idle: IdleList,
}

/// Up to this limit the others are always informed that a client has no idle connection any more.
const ALWAYS_EXACT: usize = 128;

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A connection.
    Connection,
    /// A request of HTTP/2, on a connection with its own entry.
    Stream,
}

/// An open connection or stream.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) kind: Kind,
    pub(super) holder: Option<usize>,
    pub(super) state: State,
    /// In the list of all idle connections, and in that of its address.
    pub(super) links: [Links; 2],
}

/// An address with open connections.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) ip: IpAddr,
    pub(super) address: Arc<Address>,
    /// Counts those of this shard.
    pub(super) lease: Lease,
    idle: IdleList,
    /// Whether the other shards know that it has an idle connection.
    pub(super) is_noted: bool,
    /// The limit of its connections.
    pub(super) max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A request is processed.
    Busy,
    /// It waits for a request.
    Idle { task: TaskId, since_ms: u64 },
    /// It is asked to close.
    Closing,
}

/// Indices of [`Open::links`].
pub(super) const OF_ALL: usize = 0;
pub(super) const OF_ADDRESS: usize = 1;

impl Table {
    /// The holder of an address; `know` is called if it has none yet.
    pub(super) fn holder(&mut self, ip: IpAddr, know: impl FnOnce() -> Arc<Address>) -> usize {
        let holders = &mut self.holders;
        *self.by_address.entry(ip).or_insert_with(|| {
            let address = know();
            let (lease, idle) = (address.lease(), IdleList::default());
            holders.insert(Holder { ip, address, lease, idle, is_noted: false, max: usize::MAX })
        })
    }

    /// Its address, if the others were informed that it has an idle connection, it has none any more, and
    /// they may soon ask for one. The note is gone then.
    pub(super) fn outdated_note(&mut self, key: usize) -> Option<&Address> {
        let holder = &mut self.holders[self.open[key].holder?];
        let is_scarce = holder.max <= ALWAYS_EXACT || holder.lease.used_by_all() >= holder.max / 2;
        let is_outdated = holder.is_noted && is_scarce && holder.idle.first().is_none();
        holder.is_noted &= !is_outdated;
        is_outdated.then_some(&*holder.address)
    }

    /// Since when the longest idle connection is idle.
    pub(super) fn idle_since_ms(&self) -> Option<u64> {
        match self.open[self.idle.first()?].state {
            State::Idle { since_ms, .. } => Some(since_ms),
            State::Busy | State::Closing => None,
        }
    }

    /// Asks the connection that has been idle longest to close; false if none is idle.
    pub(super) fn close_idle(&mut self, index: usize, holder: Option<usize>) -> bool {
        let list = holder.map_or(self.idle, |holder| self.holders[holder].idle);
        debug_assert_eq!(index == OF_ADDRESS, holder.is_some());
        let Some(key) = list.first() else { return false };
        if let State::Idle { task, .. } = self.open[key].state {
            wake(task);
        }
        self.unlink(key);
        self.open[key].state = State::Closing;
        true
    }

    /// Whether a connection of the holder is idle.
    pub(super) fn has_idle(&self, holder: usize) -> bool {
        self.holders[holder].idle.first().is_some()
    }

    pub(super) fn set_idle(&mut self, key: usize, task: TaskId, since_ms: u64) {
        self.open[key].state = State::Idle { task, since_ms };
        self.idle.push(&mut self.open, OF_ALL, key);
        if let Some(holder) = self.open[key].holder {
            self.holders[holder].idle.push(&mut self.open, OF_ADDRESS, key);
        }
    }

    fn unlink(&mut self, key: usize) {
        self.idle.remove(&mut self.open, OF_ALL, key);
        if let Some(holder) = self.open[key].holder {
            self.holders[holder].idle.remove(&mut self.open, OF_ADDRESS, key);
        }
    }

    /// Returns whether it was asked to close.
    pub(super) fn set_busy(&mut self, key: usize) -> bool {
        let before = std::mem::replace(&mut self.open[key].state, State::Busy);
        if matches!(before, State::Idle { .. }) {
            self.unlink(key);
        }
        before == State::Closing
    }

    /// Removes an entry. Returns its kind, and its address if that has no other.
    pub(super) fn remove(&mut self, key: usize) -> (Kind, Option<Holder>) {
        let Open { kind, holder, .. } = self.open.remove(key);
        let gone = holder.and_then(|holder| {
            self.holders[holder].lease.subtract(1);
            self.remove_if_empty(holder)
        });
        (kind, gone)
    }

    /// Removes an address without connections.
    pub(super) fn remove_if_empty(&mut self, holder: usize) -> Option<Holder> {
        (self.holders[holder].lease.used() == 0).then(|| {
            let gone = self.holders.remove(holder);
            self.by_address.remove(&gone.ip);
            gone
        })
    }
}
