//! [`Resolver`]: resolves host names on other threads, and caches the addresses briefly.
//!
//! Called before each connection. Invariants: `getaddrinfo(3)` runs outside of the loop, once per name
//! however many tasks wait for it; the number of its threads is limited, and each account has a part of
//! them, since a name server can delay each for a long time ([`crate::lookups`]); failures are not cached.

use crate::account::Account;
use crate::error::{Error, Kind};
use crate::lookups::{LookupRight, Lookups};
use crate::url::literal_address;
use outboard_reactor::{TaskId, blocking, current_task, now_ms, spawn, wake};
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// Short, because `getaddrinfo(3)` does not return the time to live of a record.
const CACHED_MS: u64 = 10_000;
/// With this many names in the cache, expired ones are removed.
const NAMES_CACHED: usize = 256;

type Resolved = Result<Rc<[IpAddr]>, Arc<io::Error>>;

/// The cache and the present lookups.
#[derive(Debug)]
pub(crate) struct Resolver {
    known: RefCell<HashMap<Box<str>, Rc<Lookup>>>,
    limits: Arc<Lookups>,
}

/// A lookup, pending or complete.
#[derive(Debug, Default)]
struct Lookup {
    outcome: RefCell<Option<(Resolved, u64)>>,
    waiting: RefCell<Vec<TaskId>>,
}

impl Lookup {
    /// Whether it can be used: pending, or successful and not expired.
    fn is_fresh(&self, now_ms: u64) -> bool {
        match &*self.outcome.borrow() {
            None => true,
            Some((found, at_ms)) => found.is_ok() && now_ms < at_ms + CACHED_MS,
        }
    }
}

impl Resolver {
    /// A resolver without addresses, within the limits of all loops.
    pub(crate) fn new(limits: &Arc<Lookups>) -> Self {
        Self { known: RefCell::default(), limits: limits.clone() }
    }

    /// The addresses of a host, at least one.
    pub(crate) async fn resolve(
        &self,
        host: &str,
        account: Option<&Arc<Account>>,
    ) -> Result<Rc<[IpAddr]>, Error> {
        if let Some(address) = literal_address(host) {
            return Ok(Rc::new([address]));
        }
        let lookup = poll_fn(|context| match self.lookup(host, account, context.waker()) {
            Some(lookup) => Poll::Ready(lookup),
            None => Poll::Pending,
        })
        .await;
        let found = poll_fn(|_| match &*lookup.outcome.borrow() {
            Some((found, _)) => Poll::Ready(found.clone()),
            None => {
                lookup.waiting.borrow_mut().push(current_task());
                Poll::Pending
            }
        })
        .await;
        found.map_err(|error| {
            Error::new(Kind::Resolve, format!("{host} has no address: {error}")).because(error)
        })
    }

    /// `None` at the limit of concurrent lookups; the task is woken when one has ended.
    fn lookup(
        &self,
        host: &str,
        account: Option<&Arc<Account>>,
        waker: &Waker,
    ) -> Option<Rc<Lookup>> {
        let now_ms = now_ms();
        let mut known = self.known.borrow_mut();
        if let Some(lookup) = known.get(host).filter(|lookup| lookup.is_fresh(now_ms)) {
            return Some(lookup.clone());
        }
        let right = self.limits.begin(account, waker)?;
        if known.len() >= NAMES_CACHED {
            known.retain(|_, lookup| lookup.is_fresh(now_ms));
        }
        let lookup = Rc::new(Lookup::default());
        known.insert(host.into(), lookup.clone());
        spawn(resolve(host.to_owned(), lookup.clone(), right));
        Some(lookup)
    }
}

/// Runs in its own task, since the first caller can be cancelled.
async fn resolve(host: String, lookup: Rc<Lookup>, right: LookupRight) {
    let found = blocking(move || {
        let addresses = (host.as_str(), 0).to_socket_addrs()?;
        let addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
        if addresses.is_empty() {
            Err(io::Error::other("the list is empty"))
        } else {
            Ok(addresses)
        }
    })
    .await;
    lookup.outcome.replace(Some((found.map(Rc::from).map_err(Arc::new), now_ms())));
    for task in lookup.waiting.take() {
        wake(task);
    }
    drop(right);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookups::{LOOKUPS_MAX, LOOKUPS_PER_ACCOUNT};
    use outboard_reactor::run;
    use std::pin::pin;
    use std::task::Context;

    /// Starts lookups and returns how many are pending. `inet_aton(3)` accepts the resolver, so no name server
    /// is involved.
    fn under_way(
        resolver: &Resolver,
        account: Option<&Arc<Account>>,
        count: usize,
        kind: u8,
    ) -> usize {
        let mut context = Context::from_waker(Waker::noop());
        for number in 0..count {
            let host = format!("127.{kind}.{number}");
            assert!(pin!(resolver.resolve(&host, account)).poll(&mut context).is_pending());
        }
        resolver.limits.under_way()
    }

    #[test]
    fn lookups_are_limited_in_total_and_per_account() {
        run(async {
            let limits = Arc::default();
            let (resolver, other_loop) = (Resolver::new(&limits), Resolver::new(&limits));
            let (one, other) = (Account::new("a", 1, 1), Account::new("b", 1, 1));
            assert_eq!(under_way(&resolver, Some(&one), 40, 1), LOOKUPS_PER_ACCOUNT);
            assert_eq!(under_way(&other_loop, Some(&other), 40, 2), 2 * LOOKUPS_PER_ACCOUNT);
            assert_eq!(under_way(&resolver, None, LOOKUPS_MAX, 3), LOOKUPS_MAX);
            let late = resolver.resolve("127.1.41", Some(&one)).await.unwrap();
            assert_eq!(late[0], IpAddr::from([127, 1, 0, 41]));
        })
        .unwrap();
    }
}
