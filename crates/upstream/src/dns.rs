//! [`Names`]: from host names to addresses, off the loop, remembered for a short while.
//!
//! Called before each connection. Invariants: `getaddrinfo(3)` runs on a thread of its own and
//! once a name at a time, however many wait for it; there are so many threads and no more, and one
//! account has a part of them, since a name server may keep each for a long time: others wait;
//! failures are not remembered.

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
const LOOKUPS_MAX: usize = 256;
/// Those among them of one account.
const LOOKUPS_PER_ACCOUNT: usize = 32;
/// Beyond this many names, those that no longer hold are forgotten.
const NAMES_KEPT: usize = 256;

type Found = Result<Rc<[IpAddr]>, String>;

/// Names that were asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: RefCell<HashMap<Box<str>, Rc<Lookup>>>,
    /// Each lookup that is under way has one of these.
    under_way: Rc<()>,
    /// Tasks that wait for one of them to end.
    waiting: Rc<RefCell<Vec<TaskId>>>,
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
        let lookup = poll_fn(|_| match self.lookup(host, account) {
            Some(lookup) => Poll::Ready(lookup),
            None => {
                let (mut waiting, task) = (self.waiting.borrow_mut(), current_task());
                if !waiting.contains(&task) {
                    waiting.push(task);
                }
                Poll::Pending
            }
        })
        .await;
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

    /// `None` as long as there are too many.
    fn lookup(&self, host: &str, account: Option<&Rc<Account>>) -> Option<Rc<Lookup>> {
        let now_ms = now_ms();
        let mut known = self.known.borrow_mut();
        if let Some(lookup) = known.get(host).filter(|lookup| lookup.is_fresh(now_ms)) {
            return Some(lookup.clone());
        }
        let share = (self.under_way.clone(), account.map(|account| account.lookups().clone()));
        // The one that the owner has, and the one just taken.
        let is_too_much = |share: &Rc<()>, most: usize| Rc::strong_count(share) > most + 1;
        if is_too_much(&share.0, LOOKUPS_MAX)
            || share.1.as_ref().is_some_and(|share| is_too_much(share, LOOKUPS_PER_ACCOUNT))
        {
            return None;
        }
        if known.len() >= NAMES_KEPT {
            known.retain(|_, lookup| lookup.is_fresh(now_ms));
        }
        let lookup = Rc::new(Lookup::default());
        known.insert(host.into(), lookup.clone());
        let asked = ask(host.to_owned(), lookup.clone());
        let waiting = self.waiting.clone();
        spawn(async move {
            asked.await;
            drop(share);
            waiting.take().into_iter().for_each(wake);
        });
        Some(lookup)
    }
}

/// Asks in a task of its own, since the first caller may give up.
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

    /// Asks for so many names, without time for an answer; how many are under way then. They are such as
    /// `inet_aton(3)` takes, so no name server is asked.
    fn under_way(names: &Names, account: Option<&Rc<Account>>, count: usize, kind: u8) -> usize {
        let mut context = Context::from_waker(std::task::Waker::noop());
        for number in 0..count {
            let host = format!("127.{kind}.{number}");
            assert!(pin!(names.resolve(&host, account)).poll(&mut context).is_pending());
        }
        Rc::strong_count(&names.under_way) - 1
    }

    #[test]
    fn so_many_names_are_asked_for_at_a_time_and_one_account_has_a_part() {
        run(async {
            let names = Names::default();
            let (one, other) = (Account::new("a", 1, 1), Account::new("b", 1, 1));
            assert_eq!(under_way(&names, Some(&one), 40, 1), LOOKUPS_PER_ACCOUNT);
            assert_eq!(under_way(&names, Some(&other), 40, 2), 2 * LOOKUPS_PER_ACCOUNT);
            assert_eq!(under_way(&names, None, LOOKUPS_MAX, 3), LOOKUPS_MAX);
            let late = names.resolve("127.1.41", Some(&one)).await.unwrap();
            assert_eq!(late[0], IpAddr::from([127, 1, 0, 41]));
        })
        .unwrap();
    }
}
