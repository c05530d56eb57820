//! [`Names`]: from host names to addresses, off the loop, remembered for a short while.
//!
//! Called before each connection. Invariants: `getaddrinfo(3)` runs on a thread of its own and
//! once a name at a time, however many wait for it; failures are not remembered.

use crate::error::{Error, Kind};
use crate::url::literal_address;
use outboard_reactor::{TaskId, blocking, current_task, now_ms, spawn, wake};
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, ToSocketAddrs};
use std::rc::Rc;
use std::task::Poll;

/// `getaddrinfo(3)` does not tell how long an answer holds, so not long.
const REMEMBERED_MS: u64 = 10_000;
/// Beyond this many names, those that no longer hold are forgotten.
const NAMES_KEPT: usize = 256;

type Found = Result<Rc<[IpAddr]>, String>;

/// Names that were asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: RefCell<HashMap<Box<str>, Rc<Lookup>>>,
}

/// One question, under way or answered.
#[derive(Debug, Default)]
struct Lookup {
    answer: RefCell<Option<(Found, u64)>>,
    waiting: RefCell<Vec<TaskId>>,
}

impl Lookup {
    /// Whether it may be used: under way, or an address that still holds.
    fn is_fresh(&self, now_ms: u64) -> bool {
        match &*self.answer.borrow() {
            None => true,
            Some((found, at_ms)) => found.is_ok() && now_ms < at_ms + REMEMBERED_MS,
        }
    }
}

impl Names {
    /// The addresses of a host; one at least.
    pub(crate) async fn resolve(&self, host: &str) -> Result<Rc<[IpAddr]>, Error> {
        if let Some(address) = literal_address(host) {
            return Ok(Rc::new([address]));
        }
        let lookup = self.lookup(host);
        let found = poll_fn(|_| match &*lookup.answer.borrow() {
            Some((found, _)) => Poll::Ready(found.clone()),
            None => {
                lookup.waiting.borrow_mut().push(current_task());
                Poll::Pending
            }
        })
        .await;
        found.map_err(|why| Error::new(Kind::Resolve, format!("{host} has no address: {why}")))
    }

    fn lookup(&self, host: &str) -> Rc<Lookup> {
        let now_ms = now_ms();
        let mut known = self.known.borrow_mut();
        if let Some(lookup) = known.get(host).filter(|lookup| lookup.is_fresh(now_ms)) {
            return lookup.clone();
        }
        if known.len() >= NAMES_KEPT {
            known.retain(|_, lookup| lookup.is_fresh(now_ms));
        }
        let lookup = Rc::new(Lookup::default());
        known.insert(host.into(), lookup.clone());
        spawn(ask(host.to_owned(), lookup.clone()));
        lookup
    }
}

/// Asks in a task of its own, since whoever asked first may give up.
async fn ask(host: String, lookup: Rc<Lookup>) {
    let found = blocking(move || {
        let addresses = (host.as_str(), 0).to_socket_addrs().map_err(|error| error.to_string())?;
        let addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
        if addresses.is_empty() { Err("none at all".to_owned()) } else { Ok(addresses) }
    })
    .await;
    lookup.answer.replace(Some((found.map(Rc::from), now_ms())));
    for task in lookup.waiting.take() {
        wake(task);
    }
}
