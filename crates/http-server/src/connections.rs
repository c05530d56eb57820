//! The account of what clients have open: connections and streams, whose they are, and which of
//! them wait for a request.
//!
//! Called by the listener for each connection and by HTTP/2 for each stream; who is served holds an
//! [`Entry`]. Invariants: what is counted is open; what is closed to make room waits for a request,
//! and has waited longest.

mod line;

use line::{Line, Links};
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

/// The share of the connections that is kept free by closing some that wait: one of so many.
const FREE_SHARE: u32 = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Connections {
    /// More would leave too few descriptors for what the connections ask for.
    most: u32,
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
    /// Told to leave, and not gone yet.
    leaving: u32,
    waiting: Line,
}

/// Something that is open.
#[derive(Debug)]
struct Open {
    kind: Kind,
    holder: Option<usize>,
    state: State,
    /// Among all that wait, and among those of its address.
    links: [Links; 2],
}

/// An address that has something open.
#[derive(Debug)]
struct Holder {
    address: IpAddr,
    open: u32,
    waiting: Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Something is being done for it.
    Busy,
    /// It waits for a request, in this task.
    Waiting(TaskId),
    /// It has been told to leave.
    Unwanted,
}

/// What is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Connection,
    /// A request of HTTP/2, on a connection that is counted as well.
    Stream,
}

/// The places of a waiting connection's links.
const OF_ALL: usize = 0;
const OF_ADDRESS: usize = 1;

impl Connections {
    /// For a process that may have so many descriptors: each connection needs one, and may need
    /// another for what it asks for.
    pub(crate) fn new(descriptors: Option<u64>) -> Rc<Self> {
        let most = descriptors.map_or(u64::from(u32::MAX), |descriptors| descriptors / 2);
        Rc::new(Self {
            most: u32::try_from(most).unwrap_or(u32::MAX).max(1),
            table: RefCell::default(),
            streams: Cell::new(0),
            waiting_for_room: RefCell::default(),
        })
    }

    /// How many connections there may be.
    pub(crate) fn most(&self, limits: &Limits) -> u32 {
        limits.max_connections.min(self.most)
    }

    /// Open connections.
    pub(crate) fn connections(&self) -> u32 {
        self.table.borrow().connections
    }

    /// Open streams of HTTP/2.
    pub(crate) fn streams(&self) -> u32 {
        self.streams.get()
    }

    /// Whether nothing more is to be accepted.
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.connections() >= self.most(limits)
    }

    /// Counts something new, and has something leave for it where that helps. `None` when its address
    /// has as much as it may, or there are too many streams.
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
        if let (Some(holder), Some(most)) = (holder, limits.connections_per_ip)
            && table.holders[holder].open >= most
            && !table.shed(OF_ADDRESS, Some(holder))
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
                let most = self.most(limits);
                if table.connections - table.leaving > most - most / FREE_SHARE {
                    table.shed(OF_ALL, None);
                }
            }
        }
        Some(Entry { connections: self.clone(), key })
    }

    /// Has the current task woken when one may be accepted, and one that waits leave for that.
    pub(crate) fn make_room(&self) {
        self.waiting_for_room.borrow_mut().push(current_task());
        let mut table = self.table.borrow_mut();
        if table.leaving == 0 {
            table.shed(OF_ALL, None);
        }
    }

    fn tell_of_room(&self) {
        for task in self.waiting_for_room.take() {
            wake(task);
        }
    }
}

impl Table {
    fn holder(&mut self, address: IpAddr) -> usize {
        let holders = &mut self.holders;
        *self.by_address.entry(address).or_insert_with(|| {
            holders.insert(Holder { address, open: 0, waiting: Line::default() })
        })
    }

    /// Tells the one that has waited longest to leave; false when none waits.
    fn shed(&mut self, which: usize, holder: Option<usize>) -> bool {
        let line = holder.map_or(self.waiting, |holder| self.holders[holder].waiting);
        debug_assert_eq!(which == OF_ADDRESS, holder.is_some());
        let Some(key) = line.first() else { return false };
        if let State::Waiting(task) = self.open[key].state {
            wake(task);
        }
        self.unlink(key);
        self.open[key].state = State::Unwanted;
        self.leaving += u32::from(self.open[key].kind == Kind::Connection);
        true
    }

    fn link(&mut self, key: usize) {
        self.waiting.push(&mut self.open, OF_ALL, key);
        if let Some(holder) = self.open[key].holder {
            self.holders[holder].waiting.push(&mut self.open, OF_ADDRESS, key);
        }
    }

    fn unlink(&mut self, key: usize) {
        self.waiting.remove(&mut self.open, OF_ALL, key);
        if let Some(holder) = self.open[key].holder {
            self.holders[holder].waiting.remove(&mut self.open, OF_ADDRESS, key);
        }
    }

    /// Whether it was to leave.
    fn set_busy(&mut self, key: usize) -> bool {
        let before = std::mem::replace(&mut self.open[key].state, State::Busy);
        match before {
            State::Busy => {}
            State::Waiting(_) => self.unlink(key),
            State::Unwanted => {
                self.leaving -= u32::from(self.open[key].kind == Kind::Connection);
            }
        }
        before == State::Unwanted
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

/// Something that is open, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    connections: Rc<Connections>,
    key: usize,
}

impl Entry {
    /// It waits for a request, in the current task, and may be told to leave.
    pub(crate) fn wait(&self) {
        let mut table = self.connections.table.borrow_mut();
        let open = &mut table.open[self.key];
        if open.state == State::Busy && open.kind == Kind::Connection {
            open.state = State::Waiting(current_task());
            table.link(self.key);
            // Nobody may have waited when room was asked for.
            self.connections.tell_of_room();
        }
    }

    /// Whether it has waited long enough.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.connections.table.borrow().open[self.key].state == State::Unwanted
    }

    /// Something is being done for it.
    pub(crate) fn set_busy(&self) {
        let was_unwanted = self.connections.table.borrow_mut().set_busy(self.key);
        if was_unwanted {
            // Another has to leave in its place.
            self.connections.tell_of_room();
        }
    }

    /// Does what a client may keep waiting; `None` when it is told to leave meanwhile.
    pub(crate) async fn while_waiting<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let done = poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            self.wait();
            if self.is_unwanted() { Poll::Ready(None) } else { Poll::Pending }
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
            Kind::Connection => self.connections.tell_of_room(),
        }
    }
}

/// What a peer is counted as: who has an IPv6 address has a network of 64 bits (RFC 4291 2.5.4).
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
