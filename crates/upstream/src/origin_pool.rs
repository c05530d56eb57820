//! [`OriginPool`]: the idle connections to one origin, and the limit of concurrent requests to it.
//!
//! Owned by the client, one per scheme, host and port. Invariants: a request holds a [`Permit`] from
//! before its connection to the end of its response; the permit counts as a request or, if the caller
//! chooses, as a response; permits are granted in the order of the requests; an idle connection has no
//! unread bytes.

use crate::account::{Account, Share};
use crate::connection::Connection;
use crate::error::{Error, Kind};
use crate::http2::{Multiplexed, Opening};
use crate::tls::TlsOptions;
use outboard_reactor::{Elapsed, TaskId, current_task, now_ms, wake, with_deadline};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// One origin.
#[derive(Debug)]
pub(crate) struct OriginPool {
    origin: Box<str>,
    /// Ordered by time; the last one was used last.
    idle: RefCell<Vec<Idle>>,
    requests: Cell<usize>,
    responses: Cell<usize>,
    waiting: RefCell<VecDeque<Rc<Waiter>>>,
    http2: RefCell<Option<(TlsOptions, Multiplexed)>>,
    opening: Opening,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since_ms: u64,
}

/// A task that waits for a permit.
#[derive(Debug)]
struct Waiter {
    task: TaskId,
    state: Cell<WaiterState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaiterState {
    Waiting,
    Granted,
    GaveUp,
}

/// The limits of one origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OriginLimits {
    pub(crate) requests: usize,
    pub(crate) responses: usize,
    pub(crate) waiting: usize,
    pub(crate) wait_ms: u64,
    pub(crate) idle: usize,
}

impl OriginPool {
    pub(crate) fn new(origin: &str) -> Self {
        Self {
            origin: origin.into(),
            idle: RefCell::default(),
            requests: Cell::new(0),
            responses: Cell::new(0),
            waiting: RefCell::default(),
            http2: RefCell::default(),
            opening: Opening::default(),
        }
    }

    /// Waits until a request may begin, until `until_ms` at most.
    pub(crate) async fn enter(
        self: &Rc<Self>,
        limits: OriginLimits,
        account: Option<&Rc<Account>>,
        until_ms: u64,
    ) -> Result<Permit, Error> {
        let share = account.map(Account::enter).transpose()?;
        if self.requests.get() < limits.requests {
            self.requests.set(self.requests.get() + 1);
            return Ok(Permit { pool: self.clone(), share, is_response: false });
        }
        let busy = |what: &str| {
            let most = limits.requests;
            let message = format!("{most} requests to {} are under way{what}", self.origin);
            Error::new(Kind::Busy, message)
        };
        if self.waiting.borrow().len() >= limits.waiting {
            return Err(busy(" and as many wait as may"));
        }
        let waiter =
            Rc::new(Waiter { task: current_task(), state: Cell::new(WaiterState::Waiting) });
        self.waiting.borrow_mut().push_back(waiter.clone());
        let queued = Queued { pool: self.clone(), waiter };
        let patience_ms = now_ms() + limits.wait_ms;
        let granted = with_deadline(
            until_ms.min(patience_ms),
            poll_fn(|_| match queued.waiter.state.get() {
                WaiterState::Granted => Poll::Ready(()),
                _ => Poll::Pending,
            }),
        );
        match granted.await {
            Ok(()) => Ok(queued.into_permit(share)),
            Err(Elapsed) => Err(busy(", and none ended in time")),
        }
    }

    fn leave(&self) {
        while let Some(next) = self.waiting.borrow_mut().pop_front() {
            if next.state.get() == WaiterState::Waiting {
                next.state.set(WaiterState::Granted);
                wake(next.task);
                return;
            }
        }
        self.requests.set(self.requests.get() - 1);
    }

    /// An idle connection that the peer has not closed meanwhile.
    pub(crate) fn take_idle(&self, tls: Option<TlsOptions>) -> Option<Box<Connection>> {
        loop {
            let mut connection = {
                let mut idle = self.idle.borrow_mut();
                let at = idle.iter().rposition(|idle| idle.connection.tls() == tls)?;
                idle.remove(at).connection
            };
            if connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// When the connection that has been idle longest became idle.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        self.idle.borrow().first().map(|idle| idle.since_ms)
    }

    pub(crate) fn close_longest_idle(&self) {
        let mut idle = self.idle.borrow_mut();
        let closed = (!idle.is_empty()).then(|| idle.remove(0));
        drop(idle);
        drop(closed);
    }

    /// Stores a connection for the next request, unless the pool is full.
    pub(crate) fn keep(&self, mut connection: Box<Connection>, limits: OriginLimits) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < limits.idle {
            connection.rest();
            idle.push(Idle { connection, since_ms: now_ms() });
        }
    }

    /// The connection that requests share, if the peer speaks HTTP/2 and the connection is open.
    pub(crate) fn http2(&self, tls: TlsOptions) -> Option<Multiplexed> {
        let mut http2 = self.http2.borrow_mut();
        let (_, connection) = http2.as_mut().filter(|(theirs, _)| *theirs == tls)?;
        connection.use_at(now_ms());
        Some(connection.clone())
    }

    pub(crate) fn share(&self, tls: TlsOptions, connection: Multiplexed) {
        self.http2.replace(Some((tls, connection)));
    }

    /// Removes the shared connection. Its present requests continue.
    pub(crate) fn unshare(&self, connection: &Multiplexed) {
        let mut http2 = self.http2.borrow_mut();
        if http2.as_ref().is_some_and(|(_, theirs)| theirs.is(connection)) {
            http2.take();
        }
    }

    pub(crate) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Closes connections that have been idle since before `since_ms`.
    pub(crate) fn expire(&self, since_ms: u64) {
        let unused =
            |(_, connection): &mut (TlsOptions, Multiplexed)| connection.used_ms() < since_ms;
        if self.under_way() == 0 {
            drop(self.http2.borrow_mut().take_if(unused));
        }
        let expired: Vec<Idle> = {
            let mut idle = self.idle.borrow_mut();
            let fresh = idle.partition_point(|idle| idle.since_ms < since_ms);
            idle.drain(..fresh).collect()
        };
        drop(expired);
    }

    /// Whether the pool has no state and can be removed.
    pub(crate) fn is_forgettable(&self) -> bool {
        self.under_way() == 0 && self.idle.borrow().is_empty() && self.http2.borrow().is_none()
    }

    pub(crate) fn idle_count(&self) -> usize {
        self.idle.borrow().len() + usize::from(self.http2.borrow().is_some())
    }

    pub(crate) fn under_way(&self) -> usize {
        self.requests.get() + self.responses.get()
    }

    pub(crate) fn responses(&self) -> usize {
        self.responses.get()
    }
}

/// The right to one concurrent request.
#[derive(Debug)]
pub(crate) struct Permit {
    pool: Rc<OriginPool>,
    share: Option<Share>,
    is_response: bool,
}

impl Permit {
    pub(crate) fn pool(&self) -> &Rc<OriginPool> {
        &self.pool
    }

    /// Counts as a response from now on, so that another request can start. At the limit of responses
    /// it continues to count as a request.
    pub(crate) fn count_as_response(&mut self, limits: OriginLimits) {
        let responses = &self.pool.responses;
        if self.is_response || responses.get() >= limits.responses {
            return;
        }
        responses.set(responses.get() + 1);
        self.is_response = true;
        self.share = self.share.take().map(Share::into_channel);
        self.pool.leave();
    }

    /// The share of the account, for a connection that switches to another protocol.
    pub(crate) fn into_channel(mut self) -> Option<Share> {
        self.share.take().map(Share::into_channel)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.is_response {
            true => self.pool.responses.set(self.pool.responses.get() - 1),
            false => self.pool.leave(),
        }
    }
}

/// A place in the queue. Dropping it leaves the queue, and returns a permit that was granted meanwhile.
struct Queued {
    pool: Rc<OriginPool>,
    waiter: Rc<Waiter>,
}

impl Queued {
    fn into_permit(self, share: Option<Share>) -> Permit {
        self.waiter.state.set(WaiterState::GaveUp);
        Permit { pool: self.pool.clone(), share, is_response: false }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        if self.waiter.state.replace(WaiterState::GaveUp) == WaiterState::Granted {
            self.pool.leave();
        }
        self.pool.waiting.borrow_mut().retain(|waiter| !Rc::ptr_eq(waiter, &self.waiter));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::{run, sleep, spawn};

    const LIMITS: OriginLimits =
        OriginLimits { requests: 1, responses: 1, waiting: 2, wait_ms: 60_000, idle: 1 };

    #[test]
    fn permits_are_granted_in_order_and_skip_waiters_that_gave_up() {
        run(async {
            let pool = Rc::new(OriginPool::new("http://a"));
            let first = pool.enter(LIMITS, None, u64::MAX).await.unwrap();
            let order = Rc::new(RefCell::new(Vec::new()));
            for name in ["gives up", "second"] {
                let (pool, order) = (pool.clone(), order.clone());
                let until_ms = if name == "second" { u64::MAX } else { now_ms() + 30 };
                spawn(async move {
                    let entered = pool.enter(LIMITS, None, until_ms).await;
                    order.borrow_mut().push((name, entered.map(drop).map_err(|e| e.kind)));
                });
            }
            while pool.waiting.borrow().len() < 2 {
                sleep(1).await;
            }
            let full = pool.enter(LIMITS, None, u64::MAX).await.unwrap_err();
            assert_eq!(full.kind, Kind::Busy);
            while order.borrow().is_empty() {
                sleep(1).await;
            }
            drop(first);
            while order.borrow().len() < 2 {
                sleep(1).await;
            }
            assert_eq!(*order.borrow(), [("gives up", Err(Kind::Busy)), ("second", Ok(()))]);
            assert!(pool.is_forgettable());
        })
        .unwrap();
    }

    #[test]
    fn responses_count_apart_from_requests_up_to_their_limit() {
        run(async {
            let pool = Rc::new(OriginPool::new("http://a"));
            let account = Account::new("a", 1, 8);
            let enter = async || pool.enter(LIMITS, Some(&account), now_ms() + 10).await;
            let mut first = enter().await.unwrap();
            first.count_as_response(LIMITS);
            first.count_as_response(LIMITS);
            let mut second = enter().await.unwrap();
            assert_eq!((pool.under_way(), pool.responses()), (2, 1));
            second.count_as_response(LIMITS);
            assert_eq!(pool.responses(), 1, "at the limit");
            assert_eq!(enter().await.unwrap_err().kind, Kind::Busy);
            drop(first);
            second.count_as_response(LIMITS);
            drop(enter().await.unwrap());
            drop(second);
            assert!(pool.is_forgettable());
        })
        .unwrap();
    }
}
