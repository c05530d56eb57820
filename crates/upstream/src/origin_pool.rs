//! [`Host`]: the idle connections to one origin, and how many requests may be under way to it.
//!
//! Owned by the client, one per scheme, host and port. Invariants: a request holds a [`Permit`]
//! from before its connection to the end of its answer, which counts for a request or, once that is
//! wished, for a response; permits are given in the order in which they were asked for; an idle
//! connection was read to the end of its last answer.

use crate::account::{Account, Share};
use crate::connection::Connection;
use crate::error::{Error, Kind};
use crate::http2::{Multiplexed, Opening};
use crate::tls::Wish;
use outboard_reactor::{Elapsed, TaskId, current_task, now_ms, wake, with_deadline};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// One origin.
#[derive(Debug)]
pub(crate) struct Host {
    origin: Box<str>,
    /// The last is the warmest.
    idle: RefCell<Vec<Idle>>,
    requests: Cell<usize>,
    responses: Cell<usize>,
    waiting: RefCell<VecDeque<Rc<Ticket>>>,
    http2: RefCell<Option<(Wish, Multiplexed)>>,
    opening: Opening,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since_ms: u64,
}

/// One that waits for a permit.
#[derive(Debug)]
struct Ticket {
    task: TaskId,
    state: Cell<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Waiting,
    Granted,
    GaveUp,
}

/// Bounds of one origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostLimits {
    pub(crate) requests: usize,
    pub(crate) responses: usize,
    pub(crate) waiting: usize,
    pub(crate) wait_ms: u64,
    pub(crate) idle: usize,
}

impl Host {
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
        limits: HostLimits,
        account: Option<&Rc<Account>>,
        until_ms: u64,
    ) -> Result<Permit, Error> {
        let share = account.map(Account::enter).transpose()?;
        if self.requests.get() < limits.requests {
            self.requests.set(self.requests.get() + 1);
            return Ok(Permit { host: self.clone(), share, is_response: false });
        }
        let busy = |what: &str| {
            let most = limits.requests;
            let message = format!("{most} requests to {} are under way{what}", self.origin);
            Error::new(Kind::Busy, message)
        };
        if self.waiting.borrow().len() >= limits.waiting {
            return Err(busy(" and as many wait as may"));
        }
        let ticket = Rc::new(Ticket { task: current_task(), state: Cell::new(Place::Waiting) });
        self.waiting.borrow_mut().push_back(ticket.clone());
        let queued = Queued { host: self.clone(), ticket };
        let patience_ms = now_ms() + limits.wait_ms;
        let granted = with_deadline(
            until_ms.min(patience_ms),
            poll_fn(|_| match queued.ticket.state.get() {
                Place::Granted => Poll::Ready(()),
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
            if next.state.get() == Place::Waiting {
                next.state.set(Place::Granted);
                wake(next.task);
                return;
            }
        }
        self.requests.set(self.requests.get() - 1);
    }

    /// An idle connection that the peer has not closed meanwhile.
    pub(crate) fn take_idle(&self, wish: Option<Wish>) -> Option<Box<Connection>> {
        loop {
            let mut connection = {
                let mut idle = self.idle.borrow_mut();
                let at = idle.iter().rposition(|idle| idle.connection.wish() == wish)?;
                idle.remove(at).connection
            };
            if connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Since when its longest idle connection is.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        self.idle.borrow().first().map(|idle| idle.since_ms)
    }

    pub(crate) fn close_longest_idle(&self) {
        let mut idle = self.idle.borrow_mut();
        let closed = (!idle.is_empty()).then(|| idle.remove(0));
        drop(idle);
        drop(closed);
    }

    /// Keeps a connection for the next request, unless enough are kept.
    pub(crate) fn keep(&self, mut connection: Box<Connection>, limits: HostLimits) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < limits.idle {
            connection.rest();
            idle.push(Idle { connection, since_ms: now_ms() });
        }
    }

    /// The connection that requests share, if the peer speaks HTTP/2 and it is still open.
    pub(crate) fn http2(&self, wish: Wish) -> Option<Multiplexed> {
        let mut http2 = self.http2.borrow_mut();
        let (_, connection) = http2.as_mut().filter(|(theirs, _)| *theirs == wish)?;
        connection.use_at(now_ms());
        Some(connection.clone())
    }

    pub(crate) fn share(&self, wish: Wish, connection: Multiplexed) {
        self.http2.replace(Some((wish, connection)));
    }

    /// Nothing more goes over the shared connection; what is under way there may end well.
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
        let unused = |(_, connection): &mut (Wish, Multiplexed)| connection.used_ms() < since_ms;
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

    /// Whether nothing is known of it that would have to be kept.
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

/// The right to have a request under way.
#[derive(Debug)]
pub(crate) struct Permit {
    host: Rc<Host>,
    share: Option<Share>,
    is_response: bool,
}

impl Permit {
    pub(crate) fn host(&self) -> &Rc<Host> {
        &self.host
    }

    /// Counts for a response from now on, so that another request may begin; for the request as
    /// before when there are as many responses as may be.
    pub(crate) fn count_as_response(&mut self, limits: HostLimits) {
        let responses = &self.host.responses;
        if self.is_response || responses.get() >= limits.responses {
            return;
        }
        responses.set(responses.get() + 1);
        self.is_response = true;
        self.share = self.share.take().map(Share::into_channel);
        self.host.leave();
    }

    /// What is left of it when the connection speaks something else from now on.
    pub(crate) fn into_channel(mut self) -> Option<Share> {
        self.share.take().map(Share::into_channel)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.is_response {
            true => self.host.responses.set(self.host.responses.get() - 1),
            false => self.host.leave(),
        }
    }
}

/// A place in the queue; given up on drop, with the permit if it has come to that.
struct Queued {
    host: Rc<Host>,
    ticket: Rc<Ticket>,
}

impl Queued {
    fn into_permit(self, share: Option<Share>) -> Permit {
        self.ticket.state.set(Place::GaveUp);
        Permit { host: self.host.clone(), share, is_response: false }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        if self.ticket.state.replace(Place::GaveUp) == Place::Granted {
            self.host.leave();
        }
        self.host.waiting.borrow_mut().retain(|ticket| !Rc::ptr_eq(ticket, &self.ticket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::{run, sleep, spawn};

    const LIMITS: HostLimits =
        HostLimits { requests: 1, responses: 1, waiting: 2, wait_ms: 60_000, idle: 1 };

    #[test]
    fn permits_go_round_in_order_and_those_who_give_up_are_passed_over() {
        run(async {
            let host = Rc::new(Host::new("http://a"));
            let first = host.enter(LIMITS, None, u64::MAX).await.unwrap();
            let order = Rc::new(RefCell::new(Vec::new()));
            for name in ["gives up", "second"] {
                let (host, order) = (host.clone(), order.clone());
                let until_ms = if name == "second" { u64::MAX } else { now_ms() + 30 };
                spawn(async move {
                    let entered = host.enter(LIMITS, None, until_ms).await;
                    order.borrow_mut().push((name, entered.map(drop).map_err(|e| e.kind)));
                });
            }
            while host.waiting.borrow().len() < 2 {
                sleep(1).await;
            }
            let full = host.enter(LIMITS, None, u64::MAX).await.unwrap_err();
            assert_eq!(full.kind, Kind::Busy);
            while order.borrow().is_empty() {
                sleep(1).await;
            }
            drop(first);
            while order.borrow().len() < 2 {
                sleep(1).await;
            }
            assert_eq!(*order.borrow(), [("gives up", Err(Kind::Busy)), ("second", Ok(()))]);
            assert!(host.is_forgettable());
        })
        .unwrap();
    }

    #[test]
    fn a_response_leaves_its_place_to_a_request_as_long_as_there_is_room_for_responses() {
        run(async {
            let host = Rc::new(Host::new("http://a"));
            let account = Account::new("a", 1, 8);
            let enter = async || host.enter(LIMITS, Some(&account), now_ms() + 10).await;
            let mut first = enter().await.unwrap();
            first.count_as_response(LIMITS);
            first.count_as_response(LIMITS);
            let mut second = enter().await.unwrap();
            assert_eq!((host.under_way(), host.responses()), (2, 1));
            second.count_as_response(LIMITS);
            assert_eq!(host.responses(), 1, "as many as may be");
            assert_eq!(enter().await.unwrap_err().kind, Kind::Busy);
            drop(first);
            second.count_as_response(LIMITS);
            drop(enter().await.unwrap());
            drop(second);
            assert!(host.is_forgettable());
        })
        .unwrap();
    }
}
