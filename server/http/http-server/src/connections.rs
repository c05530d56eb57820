//! [`Connections`]: the open connections and streams of a shard.
//!
//! The listener opens an [`Entry`] per connection, HTTP/2 one per stream; the limits are those of all shards
//! together. Invariants: to make room, the connection that has been idle longest is closed, on whichever
//! shard, and never a busy one. At most one connection per other shard is beyond `connections`: each may
//! accept one while only one more has room. Beyond `connections_per_ip` are those that were admitted in the
//! place of an idle connection that has not closed yet.

mod entry;
mod idle_list;
mod table;

use crate::census::{Census, ListenerLimits, NEVER_MS};
pub use entry::Entry;
pub(crate) use entry::MovedEntry;
use outboard_buffer::Lease;
use outboard_config::Limits;
use outboard_reactor::{Peer, current_task, now_ms, spawn};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
pub(crate) use table::Kind;
use table::{Holder, OF_ADDRESS, OF_ALL, Open, State, Table};

/// This fraction of the connections is kept free by closing idle ones.
const FREE_SHARE: u32 = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Connections {
    census: Arc<Census>,
    /// Of this shard in the census.
    index: usize,
    table: RefCell<Table>,
    streams: Lease,
    /// Whether the other shards know that a connection is idle.
    is_idle_published: Cell<bool>,
}

impl Connections {
    /// The connections of another shard.
    pub(crate) fn new(census: &Arc<Census>) -> Rc<Self> {
        let connections = Rc::new(Self {
            index: census.join(),
            table: RefCell::default(),
            streams: Lease::new(census.streams()),
            is_idle_published: Cell::new(false),
            census: census.clone(),
        });
        if census.has_others() {
            spawn(serve_others(Rc::downgrade(&connections)));
        }
        connections
    }

    /// The maximum number of connections.
    pub(crate) fn max(&self, limits: &Limits) -> u32 {
        limits.max_connections.min(self.census.max())
    }

    /// Open connections of all shards.
    pub(crate) fn connections(&self) -> u32 {
        self.census.connections()
    }

    /// Open streams of HTTP/2 of this shard.
    pub(crate) fn streams(&self) -> u32 {
        u32::try_from(self.streams.used()).unwrap_or(u32::MAX)
    }

    /// Whether no more connections may be accepted.
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.connections() >= self.max(limits)
    }

    /// Opens the entry of a connection to a listener, which may have limits of its own.
    pub(crate) fn open_at(
        self: &Rc<Self>,
        listener: Option<&ListenerLimits>,
        address: Option<IpAddr>,
        limits: &Limits,
    ) -> Option<Entry> {
        let place = match listener {
            None => None,
            Some(listener) => Some(self.census.listeners().enter(listener, address)?),
        };
        let mut entry = self.open(Kind::Connection, address, limits)?;
        entry.place = place;
        Some(entry)
    }

    /// Opens an entry, and asks an idle connection to close if that makes room. `None` if its address has
    /// too many connections, or there are too many streams.
    pub(crate) fn open(
        self: &Rc<Self>,
        kind: Kind,
        address: Option<IpAddr>,
        limits: &Limits,
    ) -> Option<Entry> {
        if kind == Kind::Stream && !self.streams.try_add(1, limits.max_http2_streams as usize) {
            return None;
        }
        let mut table = self.table.borrow_mut();
        let holder = match address.map(|address| self.enter(&mut table, address, limits)) {
            None => None,
            Some(Some(holder)) => Some(holder),
            Some(None) => {
                self.streams.subtract(usize::from(kind == Kind::Stream));
                return None;
            }
        };
        let entry = Open { kind, holder, state: State::Busy, links: Default::default() };
        let key = table.open.insert(entry);
        if kind == Kind::Connection {
            let (open, max) = (self.census.opened(), self.max(limits));
            if open.saturating_sub(self.census.closing()) > max - max / FREE_SHARE {
                self.close_longest_idle(&mut table);
            }
        }
        Some(Entry { connections: self.clone(), key, held: None, place: None })
    }

    /// Opens the entry of a connection that comes from another shard, and that the census counts already.
    fn open_moved(self: &Rc<Self>, address: Option<IpAddr>, limits: &Limits) -> Entry {
        let mut table = self.table.borrow_mut();
        let holder = address.map(|ip| {
            let (key, max) = self.holder(&mut table, ip, limits);
            table.holders[key].lease.add(1, max);
            key
        });
        let kind = Kind::Connection;
        let entry = Open { kind, holder, state: State::Busy, links: Default::default() };
        let key = table.open.insert(entry);
        Entry { connections: self.clone(), key, held: None, place: None }
    }

    /// The address that a connection counts for.
    fn address_of(&self, key: usize) -> Option<IpAddr> {
        let table = self.table.borrow();
        table.open[key].holder.map(|holder| table.holders[holder].ip)
    }

    /// The holder of an address, with its limit.
    fn holder(&self, table: &mut Table, ip: IpAddr, limits: &Limits) -> (usize, usize) {
        let key = table.holder(ip, || self.census.address(ip));
        let max = limits.connections_per_ip.map_or(usize::MAX, |max| max as usize);
        table.holders[key].max = max;
        (key, max)
    }

    /// Counts a connection or stream of an address; `None` if there are too many.
    fn enter(&self, table: &mut Table, ip: IpAddr, limits: &Limits) -> Option<usize> {
        let (key, max) = self.holder(table, ip, limits);
        if table.holders[key].lease.try_add(1, max) {
            return Some(key);
        }
        if table.close_idle(OF_ADDRESS, Some(key)) {
            self.census.asked_to_close();
        } else if !self.census.ask_for(&table.holders[key].address, ip, self.index) {
            self.forget(table.remove_if_empty(key));
            return None;
        }
        table.holders[key].lease.add(1, max);
        Some(key)
    }

    fn forget(&self, gone: Option<Holder>) {
        if let Some(Holder { ip, address, lease, is_noted, .. }) = gone {
            if is_noted {
                address.note_busy(self.index);
            }
            drop((address, lease));
            self.census.forget(ip);
        }
    }

    /// Asks the connection that has been idle longest to close, on whichever shard it is.
    fn close_longest_idle(&self, table: &mut Table) {
        self.census.asked_to_close();
        if !self.pass_on(table) {
            self.census.asked_no_more();
        }
    }

    /// Asks an idle connection to close, because another one needs its memory.
    pub(crate) fn close_one_idle(&self) {
        self.close_longest_idle(&mut self.table.borrow_mut());
    }

    /// Asks an idle connection to close, or another shard to do so; false if none is idle.
    fn pass_on(&self, table: &mut Table) -> bool {
        self.publish(table.idle_since_ms());
        match self.census.longest_idle(self.index) {
            Some(index) if index == self.index => table.close_idle(OF_ALL, None),
            Some(index) => {
                self.census.post(index).ask();
                true
            }
            None => false,
        }
    }

    fn publish(&self, idle_since_ms: Option<u64>) {
        self.census.post(self.index).publish(idle_since_ms.unwrap_or(NEVER_MS));
        self.is_idle_published.set(idle_since_ms.is_some());
    }

    /// Asks an idle connection to close, unless one is asked already, and wakes the current task when there
    /// may be room. The caller looks again afterwards, since another shard may have made room meanwhile.
    pub(crate) fn make_room(&self, context: &Context<'_>) {
        self.census.await_room(context.waker());
        if self.census.closing() == 0 {
            self.close_longest_idle(&mut self.table.borrow_mut());
        }
    }

    /// Does what other shards ask for.
    fn serve_others(&self, context: &Context<'_>) {
        let requests = self.census.post(self.index).take(context.waker());
        let mut table = self.table.borrow_mut();
        for _ in 0..requests.closings {
            if !self.pass_on(&mut table) {
                self.census.asked_no_more();
                self.census.wake_for_room();
            }
        }
        for address in requests.addresses {
            let Some(&key) = table.by_address.get(&address) else { continue };
            if table.close_idle(OF_ADDRESS, Some(key)) {
                self.census.asked_to_close();
            }
            let has_more = table.has_idle(key);
            let holder = &mut table.holders[key];
            holder.is_noted = has_more;
            if has_more {
                holder.address.note_idle(self.index);
            }
        }
    }

    fn set_idle(&self, key: usize) {
        let mut table = self.table.borrow_mut();
        let Open { kind, state, holder, .. } = table.open[key];
        if state != State::Busy || kind != Kind::Connection {
            return;
        }
        let since_ms = now_ms();
        table.set_idle(key, current_task(), since_ms);
        if let Some(holder) = holder.map(|holder| &mut table.holders[holder])
            && !std::mem::replace(&mut holder.is_noted, true)
        {
            holder.address.note_idle(self.index);
        }
        if !self.is_idle_published.get() {
            self.publish(Some(since_ms));
            // There was no idle connection when room was requested.
            self.census.wake_for_room();
        }
    }

    fn set_busy(&self, key: usize) {
        let was_closing = {
            let mut table = self.table.borrow_mut();
            let was_closing = table.set_busy(key);
            if let Some(address) = table.outdated_note(key) {
                address.note_busy(self.index);
            }
            was_closing
        };
        if was_closing {
            self.census.asked_no_more();
            // Another has to close in its place.
            self.census.wake_for_room();
        }
    }

    fn close(&self, key: usize) {
        let (kind, gone) = {
            let mut table = self.table.borrow_mut();
            if table.set_busy(key) {
                self.census.asked_no_more();
            }
            table.remove(key)
        };
        self.forget(gone);
        match kind {
            Kind::Stream => self.streams.subtract(1),
            Kind::Connection => self.census.closed(),
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.publish(None);
    }
}

/// Serves the requests of other shards for as long as the shard has its connections.
async fn serve_others(connections: Weak<Connections>) {
    poll_fn(|context| match connections.upgrade() {
        None => Poll::Ready(()),
        Some(connections) => {
            connections.serve_others(context);
            Poll::Pending
        }
    })
    .await;
}

/// The address that a peer counts as: for IPv6 its network of 64 bits (RFC 4291 2.5.4).
pub(crate) fn counted_as(peer: Peer) -> Option<IpAddr> {
    let Peer::Tcp(address) = peer else { return None };
    Some(match address.ip().to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    })
}

#[cfg(test)]
mod tests;
