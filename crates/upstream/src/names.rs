//! [`Names`]: from host names to addresses, off the loop, remembered for a short while.
//!
//! Called before each connection. Invariants: `getaddrinfo(3)` runs on a thread of its own and
//! once a name at a time, however many wait for it; there are so many threads and no more, and one
//! account has a part of them, since a name server may keep each for a long time; failures are not
//! remembered.

use crate::account::Account;
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
/// Names that are asked for at a time.
const LOOKUPS_MAX: usize = 512;
/// Those among them of one account.
const LOOKUPS_PER_ACCOUNT: usize = 128;
/// Beyond this many names, those that no longer hold are forgotten.
const NAMES_KEPT: usize = 256;

type Found = Result<Rc<[IpAddr]>, String>;

/// Names that were asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: RefCell<HashMap<Box<str>, Rc<Lookup>>>,
    /// Each lookup that is under way has one of these.
    under_way: Rc<()>,
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
    pub(crate) async fn resolve(
        &self,
        host: &str,
        account: Option<&Rc<Account>>,
    ) -> Result<Rc<[IpAddr]>, Error> {
        if let Some(address) = literal_address(host) {
            return Ok(Rc::new([address]));
        }
        let lookup = self.lookup(host, account)?;
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

    fn lookup(&self, host: &str, account: Option<&Rc<Account>>) -> Result<Rc<Lookup>, Error> {
        let now_ms = now_ms();
        let mut known = self.known.borrow_mut();
        if let Some(lookup) = known.get(host).filter(|lookup| lookup.is_fresh(now_ms)) {
            return Ok(lookup.clone());
        }
        let share = (self.under_way.clone(), account.map(|account| account.lookups().clone()));
        // The one that the owner has, and the one just taken.
        let is_too_much = |share: &Rc<()>, most: usize| Rc::strong_count(share) > most + 1;
        if is_too_much(&share.0, LOOKUPS_MAX)
            || share.1.as_ref().is_some_and(|share| is_too_much(share, LOOKUPS_PER_ACCOUNT))
        {
            let message = format!("{host} is not asked for: too many names are, without an answer");
            return Err(Error::new(Kind::Busy, message));
        }
        if known.len() >= NAMES_KEPT {
            known.retain(|_, lookup| lookup.is_fresh(now_ms));
        }
        let lookup = Rc::new(Lookup::default());
        known.insert(host.into(), lookup.clone());
        let asked = ask(host.to_owned(), lookup.clone());
        spawn(async move {
            asked.await;
            drop(share);
        });
        Ok(lookup)
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

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::run;
    use std::pin::pin;
    use std::task::Context;

    /// Asks for so many names, without time for an answer; how many were refused. They are such as
    /// `inet_aton(3)` takes, so no name server is asked.
    fn refused(names: &Names, account: Option<&Rc<Account>>, count: usize, kind: &str) -> usize {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let ask = |number: &usize| {
            let host = format!("127.{kind}.{number}");
            let asked = pin!(names.resolve(&host, account)).poll(&mut context);
            matches!(asked, Poll::Ready(Err(error)) if error.kind == Kind::Busy)
        };
        (0..count).filter(ask).count()
    }

    #[test]
    fn so_many_names_are_asked_for_at_a_time_and_one_account_has_a_part() {
        run(async {
            let names = Names::default();
            let (one, other) = (Account::new("a", 1, 1), Account::new("b", 1, 1));
            assert_eq!(refused(&names, Some(&one), LOOKUPS_PER_ACCOUNT + 5, "1"), 5);
            assert_eq!(refused(&names, Some(&one), LOOKUPS_PER_ACCOUNT, "1"), 0, "the same");
            assert_eq!(refused(&names, Some(&other), LOOKUPS_PER_ACCOUNT, "2"), 0);
            let left = LOOKUPS_MAX - 2 * LOOKUPS_PER_ACCOUNT;
            assert_eq!(refused(&names, None, left + 5, "3"), 5);
            while Rc::strong_count(&names.under_way) > 1 {
                outboard_reactor::sleep(1).await;
            }
            assert_eq!(refused(&names, Some(&one), 1, "4"), 0);
        })
        .unwrap();
    }
}
