//! [`Account`]: the limits of one caller, so that it leaves capacity for others.
//!
//! Set on a request. Invariant: a request counts from before it waits for a permit to the end of its
//! response; a connection that was switched to another protocol, or whose response counts apart from
//! requests, counts as a channel while it is open.

use crate::error::{Error, Kind};
use std::cell::Cell;
use std::rc::Rc;

/// The limits of one caller and its present use of them.
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
    /// An account of this name, with limits of concurrent requests, and of requests and channels together.
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

    /// Each present name lookup of the caller holds a clone.
    pub(crate) fn lookups(&self) -> &Rc<()> {
        &self.lookups
    }

    pub(crate) fn enter(self: &Rc<Self>) -> Result<Share, Error> {
        let (requests, channels) = (self.requests.get(), self.channels.get());
        if requests >= self.most_requests || requests + channels >= self.most_connections {
            let message = format!(
                "{requests} requests and {channels} open channels to other servers are under way \
                 for {}, which is the limit",
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
    /// Counts as a channel from now on.
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
    fn requests_and_channels_beyond_the_limits_are_rejected() {
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
