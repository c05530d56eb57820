//! [`OriginPool`]: the idle connections of one loop to one origin, and its requests to it.
//!
//! Owned by the client, one per scheme, host and port. Invariants: a request holds a [`Permit`] from
//! before its connection to the end of its response; the permit counts as a request or, if the caller
//! chooses, as a response, here and in the limits of all loops; an idle connection has no unread bytes.

use crate::account::{Account, Share};
use crate::connection::Connection;
use crate::doorbell::Doorbell;
use crate::error::Error;
use crate::http2::{Multiplexed, Opening};
use crate::origin_limits::{IdleRight, OriginLimits, Right};
use crate::sockets::{Member, Socket};
use crate::tls::TlsOptions;
use outboard_reactor::{now_ms, sleep};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// One origin.
#[derive(Debug)]
pub(crate) struct OriginPool {
    limits: Arc<OriginLimits>,
    member: Rc<Member>,
    /// Ordered by time; the last one was used last.
    idle: RefCell<Vec<Idle>>,
    requests: Cell<usize>,
    responses: Cell<usize>,
    http2: RefCell<Option<(TlsOptions, Multiplexed)>>,
    opening: Opening,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since_ms: u64,
    _right: IdleRight,
}

impl OriginPool {
    /// A pool without connections; the loop calls [`Self::answer`] when the doorbell is rung.
    pub(crate) fn new(limits: Arc<OriginLimits>, doorbell: &Arc<Doorbell>) -> Self {
        Self {
            member: limits.sockets().join(doorbell),
            limits,
            idle: RefCell::default(),
            requests: Cell::new(0),
            responses: Cell::new(0),
            http2: RefCell::default(),
            opening: Opening::default(),
        }
    }

    /// Waits until a request may begin, until `until_ms` at most.
    pub(crate) async fn enter(
        self: &Rc<Self>,
        account: Option<&Arc<Account>>,
        until_ms: u64,
    ) -> Result<Permit, Error> {
        let share = account.map(Account::enter).transpose()?;
        let right = self.limits.enter(until_ms).await?;
        self.requests.set(self.requests.get() + 1);
        Ok(Permit { pool: self.clone(), right, share })
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
                connection.resume();
                return Some(connection);
            }
        }
    }

    /// When the connection that has been idle longest became idle.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        self.idle.borrow().first().map(|idle| idle.since_ms)
    }

    /// False if no connection is idle.
    pub(crate) fn close_longest_idle(&self) -> bool {
        let mut idle = self.idle.borrow_mut();
        let closed = (!idle.is_empty()).then(|| idle.remove(0));
        drop(idle);
        closed.is_some()
    }

    /// Closes the idle connections whose places other loops need.
    pub(crate) fn answer(&self) {
        self.member.answer(|| self.close_longest_idle());
    }

    /// Waits for the right to one more connection. The caller has a permit, so one is free, or idle in a
    /// loop, or about to be.
    pub(crate) async fn socket(&self) -> Socket {
        loop {
            match self.member.take_or_close(|| self.close_longest_idle()).await {
                Some(socket) => return socket,
                None => sleep(1).await,
            }
        }
    }

    /// Stores a connection for the next request, unless as many are idle as may.
    pub(crate) fn keep(&self, mut connection: Box<Connection>) {
        if let Some(right) = self.limits.keep_idle() {
            connection.rest();
            let idle = Idle { connection, since_ms: now_ms(), _right: right };
            self.idle.borrow_mut().push(idle);
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

    /// Whether the pool has no state and no request, not even a waiting one, and can be removed.
    pub(crate) fn is_forgettable(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) == 1 && self.idle_count() == 0
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
    right: Right,
    share: Option<Share>,
}

impl Permit {
    pub(crate) fn pool(&self) -> &Rc<OriginPool> {
        &self.pool
    }

    /// Counts as a response from now on, so that another request can start. At the limit of responses
    /// it continues to count as a request.
    pub(crate) fn count_as_response(&mut self) {
        if !self.right.count_as_response() {
            return;
        }
        let OriginPool { requests, responses, .. } = &*self.pool;
        requests.set(requests.get() - 1);
        responses.set(responses.get() + 1);
        self.share = self.share.take().map(Share::into_channel);
    }

    /// The share of the account, for a connection that switches to another protocol.
    pub(crate) fn into_channel(mut self) -> Option<Share> {
        self.share.take().map(Share::into_channel)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let OriginPool { requests, responses, .. } = &*self.pool;
        let counted = if self.right.is_response() { responses } else { requests };
        counted.set(counted.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::settings::Settings;
    use outboard_reactor::{now_ms, run};

    fn pool() -> Rc<OriginPool> {
        let settings = Settings {
            requests_per_host: 1,
            responses_per_host: 1,
            waiting_per_host: 2,
            ..Settings::default()
        };
        Rc::new(OriginPool::new(OriginLimits::new("http://a", &settings), &Arc::default()))
    }

    #[test]
    fn responses_count_apart_from_requests_up_to_their_limit() {
        run(async {
            let pool = pool();
            let account = Account::new("a", 1, 8);
            let enter = async || pool.enter(Some(&account), now_ms() + 10).await;
            let mut first = enter().await.unwrap();
            first.count_as_response();
            first.count_as_response();
            let mut second = enter().await.unwrap();
            assert_eq!((pool.under_way(), pool.responses()), (2, 1));
            second.count_as_response();
            assert_eq!(pool.responses(), 1, "at the limit");
            assert_eq!(enter().await.unwrap_err().kind, Kind::Busy);
            drop(first);
            second.count_as_response();
            drop(enter().await.unwrap());
            assert!(!pool.is_forgettable(), "a response is arriving");
            drop(second);
            assert!(pool.is_forgettable());
        })
        .unwrap();
    }
}
