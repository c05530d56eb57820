//! [`Connections`]: the connections of a client to all origins, and its counts.
//!
//! Shared by the client and its responses, which return their connections. Invariants: no more
//! connections are open than the settings allow for all clients of the group; an idle one is closed after
//! its time, or when another client needs its place.

use crate::client_group::ClientGroup;
use crate::connection::Connection;
use crate::counters::{Counters, Gauges};
use crate::doorbell::Doorbell;
use crate::error::{Error, Kind};
use crate::origin_pool::OriginPool;
use crate::sockets::{Member, Socket};
use outboard_reactor::{now_ms, spawn, with_deadline};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Connections {
    group: Arc<ClientGroup>,
    pools: RefCell<HashMap<Box<str>, Rc<OriginPool>>>,
    member: Rc<Member>,
    doorbell: Arc<Doorbell>,
    counters: RefCell<Counters>,
    sweeping: Cell<bool>,
}

impl Connections {
    pub(crate) fn new(group: &Arc<ClientGroup>) -> Rc<Self> {
        let doorbell = Arc::default();
        Rc::new(Self {
            group: group.clone(),
            member: group.join(&doorbell),
            doorbell,
            pools: RefCell::default(),
            counters: RefCell::default(),
            sweeping: Cell::new(false),
        })
    }

    pub(crate) fn group(&self) -> &Arc<ClientGroup> {
        &self.group
    }

    /// The counts since the start.
    pub(crate) fn counters(&self) -> Counters {
        *self.counters.borrow()
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut Counters)) {
        add(&mut self.counters.borrow_mut());
    }

    /// The present state, over all origins.
    pub(crate) fn gauges(&self) -> Gauges {
        let pools = self.pools.borrow();
        let mut gauges = Gauges::default();
        for pool in pools.values() {
            gauges.idle += pool.idle_count();
            gauges.under_way += pool.under_way();
            gauges.responses += pool.responses();
        }
        gauges
    }

    /// The pool of a server, by its name: the origin of URLs, or that of an endpoint.
    pub(crate) fn pool(&self, server: &str) -> Rc<OriginPool> {
        let mut pools = self.pools.borrow_mut();
        if let Some(pool) = pools.get(server) {
            return pool.clone();
        }
        let pool = Rc::new(OriginPool::new(self.group.origin(server), &self.doorbell));
        pools.insert(server.into(), pool.clone());
        pool
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pools.borrow().is_empty()
    }

    /// The right to one more connection. At the limit, the connection that has been idle longest is closed,
    /// or one of another client if this one has none.
    pub(crate) async fn socket(&self, name: &str) -> Result<Socket, Error> {
        let socket = self.member.take_or_close(|| self.close_longest_idle()).await;
        socket.ok_or_else(|| {
            let most = self.member.most();
            let message = format!(
                "no connection to {name}: {most} connections to other servers are open, which is the limit"
            );
            Error::new(Kind::Busy, message)
        })
    }

    /// False if no connection is idle.
    fn close_longest_idle(&self) -> bool {
        let pools = self.pools.borrow();
        let idle = pools.values().filter_map(|pool| Some((pool.idle_since_ms()?, pool)));
        let longest = idle.min_by_key(|(since_ms, _)| *since_ms);
        let Some(pool) = longest.map(|(_, pool)| pool.clone()) else { return false };
        drop(pools);
        pool.close_longest_idle()
    }

    /// Closes the idle connections whose places other clients need.
    fn answer(&self) {
        self.member.answer(|| self.close_longest_idle());
        let pools: Vec<_> = self.pools.borrow().values().cloned().collect();
        pools.iter().for_each(|pool| pool.answer());
    }

    /// Returns a connection whose response was read to its end to the pool.
    pub(crate) fn keep(self: &Rc<Self>, pool: &OriginPool, connection: Option<Box<Connection>>) {
        if let Some(connection) = connection {
            pool.keep(connection);
        }
        if !self.sweeping.replace(true) {
            let idle_timeout_ms = self.group.settings().idle_timeout_ms;
            spawn(sweep(Rc::downgrade(self), self.doorbell.clone(), idle_timeout_ms));
        }
    }

    /// Closes connections that have been idle for too long; returns whether any pool is left.
    fn expire(&self) -> bool {
        let since_ms = now_ms().saturating_sub(self.group.settings().idle_timeout_ms);
        let mut pools = self.pools.borrow_mut();
        pools.retain(|_, pool| {
            pool.expire(since_ms);
            !pool.is_forgettable()
        });
        self.group.forget_unused();
        if pools.is_empty() {
            self.sweeping.set(false);
        }
        !pools.is_empty()
    }
}

/// Closes idle connections after their time, and those whose places other clients need, while there are
/// any.
async fn sweep(connections: Weak<Connections>, doorbell: Arc<Doorbell>, idle_timeout_ms: u64) {
    loop {
        let until_ms = now_ms() + (idle_timeout_ms / 4).max(10);
        while with_deadline(until_ms, doorbell.rung()).await.is_ok() {
            if let Some(connections) = connections.upgrade() {
                connections.answer();
            }
        }
        let Some(connections) = connections.upgrade() else { return };
        if !connections.expire() {
            // Nothing is idle any more, so nothing is asked after this.
            return connections.answer();
        }
    }
}
