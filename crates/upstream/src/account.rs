//! [`Account`]: what one caller may have under way, so that it leaves something for others.
//!
//! Given with a request. Invariant: a request counts from before it waits for its host to the end of its
//! answer; a connection that was switched to another protocol, or whose answer counts apart from
//! requests, counts as a channel for as long as it is open.

use crate::error::{Error, Kind};
use std::cell::Cell;
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub struct Account {
    name: Box<str>,
    most_requests: usize,
    most_connections: usize,
    requests: Cell<usize>,
    channels: Cell<usize>,
    lookups: Rc<()>,
}

impl Account {
    /// For a caller of this name. It may have so many requests, and with connections that speak
    /// something else not more than so many connections.
    pub fn new(name: &str, most_requests: usize, most_connections: usize) -> Rc<Self> {
        Rc::new(Self {
            name: name.into(),
            most_requests,
            most_connections,
            requests: Cell::new(0),
            channels: Cell::new(0),
            lookups: Rc::default(),
        })
    }

    /// What each of its lookups of names has a share of while it is under way.
    pub(crate) fn lookups(&self) -> &Rc<()> {
        &self.lookups
    }

    pub(crate) fn enter(self: &Rc<Self>) -> Result<Share, Error> {
        let (requests, channels) = (self.requests.get(), self.channels.get());
        if requests >= self.most_requests || requests + channels >= self.most_connections {
            let message = format!(
                "{requests} requests and {channels} open channels to other servers are under way \
                 for {}, which are as many as may be",
                self.name
            );
            return Err(Error::new(Kind::Busy, message));
        }
        self.requests.set(requests + 1);
        Ok(Share { account: self.clone(), is_channel: false })
    }
}

/// One request, or one channel.
#[derive(Debug)]
pub(crate) struct Share {
    account: Rc<Account>,
    is_channel: bool,
}

impl Share {
    /// It is no request any more.
    pub(crate) fn into_channel(mut self) -> Self {
        if self.is_channel {
            return self;
        }
        self.account.requests.set(self.account.requests.get() - 1);
        self.account.channels.set(self.account.channels.get() + 1);
        self.is_channel = true;
        self
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Account { requests, channels, .. } = &*self.account;
        let counted = if self.is_channel { channels } else { requests };
        counted.set(counted.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_requests_and_connections_and_then_is_refused() {
        let account = Account::new("a", 2, 3);
        let first = account.enter().unwrap();
        let second = account.enter().unwrap();
        assert_eq!(account.enter().unwrap_err().kind, Kind::Busy);
        let channel = first.into_channel();
        let third = account.enter().unwrap();
        drop(second);
        let another = account.enter().unwrap().into_channel();
        assert_eq!(account.enter().unwrap_err().kind, Kind::Busy, "three are open");
        drop((channel, third, another));
        assert_eq!((account.requests.get(), account.channels.get()), (0, 0));
    }
}
