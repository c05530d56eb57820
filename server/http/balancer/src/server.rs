//! [`Server`]: a server of an upstream, its health and its counts.
//!
//! Shared by all threads, and by the groups of successive configurations that name it. Invariant: `under_way`
//! is the number of its [`crate::Attempt`]s.

use crate::health::{Change, Health, State};
use crate::rendezvous::hash;
use outboard_config::{HealthCheck, UpstreamGroup, UpstreamServer};
use outboard_upstream::{Endpoint, EndpointAddress};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// See the module.
#[derive(Debug)]
pub struct Server {
    name: Box<str>,
    origin: Box<str>,
    endpoint: Option<Arc<Endpoint>>,
    pub(crate) hash: u64,
    pub(crate) health: Health,
    pub(crate) under_way: AtomicUsize,
    requests: AtomicU64,
    failures: AtomicU64,
    total_us: AtomicU64,
    recent_us: AtomicU64,
}

/// What a server has done, for status and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Requests in progress.
    pub under_way: usize,
    /// Attempts since the start.
    pub requests: u64,
    /// Those that failed.
    pub failures: u64,
    /// Time to the heads of all responses.
    pub total_us: u64,
    /// The moving average of this time.
    pub recent_us: u64,
}

impl Server {
    /// A server of the configuration. `address`: that of its name, if it was resolved.
    pub(crate) fn new(config: &UpstreamServer, address: Option<IpAddr>) -> Self {
        let (name, endpoint) = match (&config.socket, address) {
            (Some(path), _) => {
                let name: Box<str> = format!("unix:{}", path.display()).into();
                let address = EndpointAddress::Unix(path.clone());
                (name.clone(), Some(Arc::new(Endpoint { name, address })))
            }
            (None, Some(address)) => {
                let name: Box<str> = format!("{} ({address})", config.origin).into();
                let address = EndpointAddress::Tcp((address, port(&config.origin)).into());
                (name.clone(), Some(Arc::new(Endpoint { name, address })))
            }
            (None, None) => (config.origin.as_str().into(), None),
        };
        Self {
            origin: config.origin.as_str().into(),
            hash: hash(name.as_bytes()),
            name,
            endpoint,
            health: Health::default(),
            under_way: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            total_us: AtomicU64::new(0),
            recent_us: AtomicU64::new(0),
        }
    }

    /// Its name in logs, metrics and commands; unique within its group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Scheme, host and port, as the URLs of its requests begin.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Where its connections lead, if the origin does not say it.
    pub fn endpoint(&self) -> Option<&Arc<Endpoint>> {
        self.endpoint.as_ref()
    }

    /// What it can be used for.
    pub fn state(&self, now_ms: u64) -> State {
        self.health.state(now_ms)
    }

    /// A check has passed or failed.
    pub fn checked(&self, passed: bool, rules: &HealthCheck, now_ms: u64) -> Option<Change> {
        self.health.checked(passed, rules, now_ms)
    }

    /// It gets no new requests, or again some. Returns whether it was drained before.
    pub fn set_drained(&self, is_drained: bool) -> bool {
        self.health.set_drained(is_drained)
    }

    /// Its counts.
    pub fn figures(&self) -> Figures {
        Figures {
            under_way: self.under_way.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            total_us: self.total_us.load(Ordering::Relaxed),
            recent_us: self.recent_us.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, rules: &UpstreamGroup, now_ms: u64) -> Option<Change> {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.health.failed(rules, now_ms)
    }

    /// The head of a response has arrived so long after the request was sent.
    pub(crate) fn took(&self, us: u64) {
        self.total_us.fetch_add(us, Ordering::Relaxed);
        let recent_us = self.recent_us.load(Ordering::Relaxed);
        // A lost update of another thread is one request less in an average of many.
        let next_us = if recent_us == 0 { us } else { recent_us - recent_us / 8 + us / 8 };
        self.recent_us.store(next_us, Ordering::Relaxed);
    }
}

/// The port of an origin, which the configuration has checked.
fn port(origin: &str) -> u16 {
    let default = if origin.starts_with("https") { 443 } else { 80 };
    let authority = origin.split("://").nth(1).unwrap_or_default();
    let port = authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    port.and_then(|(_, port)| port.parse().ok()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_port() {
        let ports = ["http://a:81", "https://a", "http://[::1]", "http://[::1]:82"].map(port);
        assert_eq!(ports, [81, 443, 80, 82]);
    }
}
