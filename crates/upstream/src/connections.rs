//! [`Connections`]: the connections of a client to all origins, and its counts.
//!
//! Shared by the client and its responses, which return their connections. Invariants: no more
//! connections are open than the settings allow; an idle one is closed after its time.

use crate::connection::Connection;
use crate::counters::{Counters, Gauges};
use crate::error::{Error, Kind};
use crate::origin_pool::{OriginLimits, OriginPool};
use crate::sockets::{Socket, Sockets};
use crate::url::Url;
use outboard_reactor::{now_ms, sleep, spawn};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

/// The limits of a client, and its trusted certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Concurrent requests to one origin.
    pub requests_per_host: usize,
    /// Responses of one origin that count apart from these ([`Response::count_as_response`]).
    pub responses_per_host: usize,
    /// Requests to one origin that may wait for another to end.
    pub waiting_per_host: usize,
    /// The longest wait of such a request.
    pub wait_ms: u64,
    /// Connections to all origins.
    pub connections: usize,
    /// Idle connections to one origin.
    pub idle_per_host: usize,
    /// How long an idle connection stays open.
    pub idle_timeout_ms: u64,
    /// Certificate authorities in addition to the system's, as PEM.
    pub ca_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requests_per_host: 1024,
            responses_per_host: 4096,
            waiting_per_host: 1024,
            wait_ms: 1_000,
            connections: 16_384,
            idle_per_host: 512,
            idle_timeout_ms: 30_000,
            ca_file: None,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Connections {
    settings: Settings,
    pools: RefCell<HashMap<Box<str>, Rc<OriginPool>>>,
    sockets: Rc<Sockets>,
    counters: RefCell<Counters>,
    sweeping: Cell<bool>,
}

impl Connections {
    pub(crate) fn new(settings: Settings) -> Rc<Self> {
        Rc::new(Self {
            sockets: Sockets::new(settings.connections),
            settings,
            pools: RefCell::default(),
            counters: RefCell::default(),
            sweeping: Cell::new(false),
        })
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

    /// The pool of the URL's origin.
    pub(crate) fn pool(&self, url: &Url) -> Rc<OriginPool> {
        let mut pools = self.pools.borrow_mut();
        if let Some(pool) = pools.get(url.origin()) {
            return pool.clone();
        }
        let pool = Rc::new(OriginPool::new(url.origin()));
        pools.insert(url.origin().into(), pool.clone());
        pool
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pools.borrow().is_empty()
    }

    /// The limits of each pool.
    pub(crate) fn limits(&self) -> OriginLimits {
        OriginLimits {
            requests: self.settings.requests_per_host,
            responses: self.settings.responses_per_host,
            waiting: self.settings.waiting_per_host,
            wait_ms: self.settings.wait_ms,
            idle: self.settings.idle_per_host,
        }
    }

    /// The right to one more connection. At the limit, the connection that has been idle longest is closed.
    pub(crate) fn socket(&self, name: &str) -> Result<Socket, Error> {
        loop {
            if let Some(socket) = self.sockets.take() {
                return Ok(socket);
            }
            let pools = self.pools.borrow();
            let idle = pools.values().filter_map(|pool| Some((pool.idle_since_ms()?, pool)));
            let longest = idle.min_by_key(|(since_ms, _)| *since_ms);
            let Some(pool) = longest.map(|(_, pool)| pool.clone()) else {
                let most = self.sockets.most();
                let message = format!(
                    "no connection to {name}: {most} connections to other servers are open, which is the limit"
                );
                return Err(Error::new(Kind::Busy, message));
            };
            drop(pools);
            pool.close_longest_idle();
        }
    }

    /// Returns a connection whose response was read to its end to the pool.
    pub(crate) fn keep(self: &Rc<Self>, pool: &OriginPool, connection: Option<Box<Connection>>) {
        if let Some(connection) = connection {
            pool.keep(connection, self.limits());
        }
        if !self.sweeping.replace(true) {
            spawn(sweep(Rc::downgrade(self), self.settings.idle_timeout_ms));
        }
    }

    /// Closes connections that have been idle for too long; returns whether any pool is left.
    fn expire(&self) -> bool {
        let since_ms = now_ms().saturating_sub(self.settings.idle_timeout_ms);
        let mut pools = self.pools.borrow_mut();
        pools.retain(|_, pool| {
            pool.expire(since_ms);
            !pool.is_forgettable()
        });
        if pools.is_empty() {
            self.sweeping.set(false);
        }
        !pools.is_empty()
    }
}

/// Closes idle connections after their time, while there are any.
async fn sweep(connections: Weak<Connections>, idle_timeout_ms: u64) {
    loop {
        sleep((idle_timeout_ms / 4).max(10)).await;
        match connections.upgrade() {
            Some(connections) if connections.expire() => {}
            _ => return,
        }
    }
}
