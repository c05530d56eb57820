//! [`Connections`]: the table of open connections and streams, by client address.
//!
//! The listener opens an [`Entry`] per connection, HTTP/2 one per stream. Invariant: to make room, the
//! connection that has been idle longest is closed, and never a busy one.

mod idle_list;

use idle_list::{IdleList, Links};
use outboard_config::Limits;
use outboard_reactor::{Peer, TaskId, current_task, wake};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// This fraction of the connections is kept free by closing idle ones.
const FREE_SHARE: u32 = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Connections {
    /// More would leave too few descriptors for what requests need.
    max: u32,
    table: RefCell<Table>,
    streams: Cell<u32>,
    waiting_for_room: RefCell<Vec<TaskId>>,
}

#[derive(Debug, Default)]
struct Table {
    open: Slab<Open>,
    holders: Slab<Holder>,
    by_address: HashMap<IpAddr, usize>,
    connections: u32,
    /// Connections that were asked to close.
    closing: u32,
    idle: IdleList,
}

/// An open connection or stream.
#[derive(Debug)]
struct Open {
    kind: Kind,
    holder: Option<usize>,
    state: State,
    /// In the list of all idle connections, and in that of its address.
    links: [Links; 2],
}

/// An address with open connections.
#[derive(Debug)]
struct Holder {
    address: IpAddr,
    open: u32,
    idle: IdleList,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A request is processed.
    Busy,
    /// It waits for a request, in this task.
    Idle(TaskId),
    /// It is asked to close.
    Closing,
}

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A connection.
    Connection,
    /// A request of HTTP/2, on a connection with its own entry.
    Stream,
}

/// Indices of [`Open::links`].
const OF_ALL: usize = 0;
const OF_ADDRESS: usize = 1;

impl Connections {
    /// A table for a process with this limit of descriptors: a connection needs one, and often another for
    /// its request.
    pub(crate) fn new(descriptors: Option<u64>) -> Rc<Self> {
        let max = descriptors.map_or(u64::from(u32::MAX), |descriptors| descriptors / 2);
        Rc::new(Self {
            max: u32::try_from(max).unwrap_or(u32::MAX).max(1),
            table: RefCell::default(),
            streams: Cell::new(0),
            waiting_for_room: RefCell::default(),
        })
    }

    /// The maximum number of connections.
    pub(crate) fn max(&self, limits: &Limits) -> u32 {
        limits.max_connections.min(self.max)
    }

    /// Open connections.
    pub(crate) fn connections(&self) -> u32 {
        self.table.borrow().connections
    }

    /// Open streams of HTTP/2.
    pub(crate) fn streams(&self) -> u32 {
        self.streams.get()
    }

    /// Whether no more connections may be accepted.
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.connections() >= self.max(limits)
    }

    /// Opens an entry, and asks an idle connection to close if that makes room. `None` if its address has
    /// too many connections, or there are too many streams.
    pub(crate) fn open(
        self: &Rc<Self>,
        kind: Kind,
        address: Option<IpAddr>,
        limits: &Limits,
    ) -> Option<Entry> {
        if kind == Kind::Stream && self.streams.get() >= limits.max_http2_streams {
            return None;
        }
        let mut table = self.table.borrow_mut();
        let holder = address.map(|address| table.holder(address));
        if let (Some(holder), Some(max)) = (holder, limits.connections_per_ip)
            && table.holders[holder].open >= max
            && !table.close_idle(OF_ADDRESS, Some(holder))
        {
            return None;
        }
        if let Some(holder) = holder {
            table.holders[holder].open += 1;
        }
        let entry = Open { kind, holder, state: State::Busy, links: Default::default() };
        let key = table.open.insert(entry);
        match kind {
            Kind::Stream => self.streams.set(self.streams.get() + 1),
            Kind::Connection => {
                table.connections += 1;
                let max = self.max(limits);
                if table.connections - table.closing > max - max / FREE_SHARE {
                    table.close_idle(OF_ALL, None);
                }
            }
        }
        Some(Entry { connections: self.clone(), key })
    }

    /// Asks an idle connection to close, and wakes the current task when there is room.
    pub(crate) fn make_room(&self) {
        self.waiting_for_room.borrow_mut().push(current_task());
        let mut table = self.table.borrow_mut();
        if table.closing == 0 {
            table.close_idle(OF_ALL, None);
        }
    }

    fn wake_for_room(&self) {
        for task in self.waiting_for_room.take() {
            wake(task);
        }
    }
}

impl Table {
    fn holder(&mut self, address: IpAddr) -> usize {
        let holders = &mut self.holders;
        *self.by_address.entry(address).or_insert_with(|| {
            holders.insert(Holder { address, open: 0, idle: IdleList::default() })
        })
    }

    /// Asks the connection that has been idle longest to close; false if none is idle.
    fn close_idle(&mut self, index: usize, holder: Option<usize>) -> bool {
        let list = holder.map_or(self.idle, |holder| self.holders[holder].idle);
        debug_assert_eq!(index == OF_ADDRESS, holder.is_some());
        let Some(key) = list.first() else { return false };
        if let State::Idle(task) = self.open[key].state {
            wake(task);
        }
        self.unlink(key);
        self.open[key].state = State::Closing;
        self.closing += u32::from(self.open[key].kind == Kind::Connection);
        true
    }

    fn link(&mut self, key: usize) {
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
    fn set_busy(&mut self, key: usize) -> bool {
        let before = std::mem::replace(&mut self.open[key].state, State::Busy);
        match before {
            State::Busy => {}
            State::Idle(_) => self.unlink(key),
            State::Closing => {
                self.closing -= u32::from(self.open[key].kind == Kind::Connection);
            }
        }
        before == State::Closing
    }

    fn close(&mut self, key: usize) -> Kind {
        self.set_busy(key);
        let Open { kind, holder, .. } = self.open.remove(key);
        self.connections -= u32::from(kind == Kind::Connection);
        if let Some(holder) = holder {
            self.holders[holder].open -= 1;
            if self.holders[holder].open == 0 {
                let gone = self.holders.remove(holder);
                self.by_address.remove(&gone.address);
            }
        }
        kind
    }
}

/// An open connection or stream, until this is dropped.
#[derive(Debug)]
pub struct Entry {
    connections: Rc<Connections>,
    key: usize,
}

impl Entry {
    /// The connection waits for a request in the current task, and may be asked to close.
    pub fn set_idle(&self) {
        let mut table = self.connections.table.borrow_mut();
        let open = &mut table.open[self.key];
        if open.state == State::Busy && open.kind == Kind::Connection {
            open.state = State::Idle(current_task());
            table.link(self.key);
            // There may have been no idle connection when room was requested.
            self.connections.wake_for_room();
        }
    }

    /// Whether it is asked to close.
    pub fn must_close(&self) -> bool {
        self.connections.table.borrow().open[self.key].state == State::Closing
    }

    /// A request is processed.
    pub fn set_busy(&self) {
        let was_closing = self.connections.table.borrow_mut().set_busy(self.key);
        if was_closing {
            // Another has to close in its place.
            self.connections.wake_for_room();
        }
    }

    /// Runs work in index the client may be idle; `None` if it is asked to close meanwhile.
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

impl Drop for Entry {
    fn drop(&mut self) {
        let kind = self.connections.table.borrow_mut().close(self.key);
        match kind {
            Kind::Stream => self.connections.streams.set(self.connections.streams.get() - 1),
            Kind::Connection => self.connections.wake_for_room(),
        }
    }
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
