//! [`Account`]: the limits of one caller, so that it leaves capacity for others.
//!
//! Set on a request. Invariant: a request counts from before it waits for a permit to the end of its
//! response, whichever loop sends it; a connection that was switched to another protocol, or whose response counts apart from
//! requests, counts as a channel while it is open.

use crate::error::{Error, Kind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limits of one caller and its present use of them.
#[derive(Debug)]
pub struct Account {
    name: Box<str>,
    most_requests: usize,
    most_connections: usize,
    present: Mutex<Present>,
    lookups: Arc<()>,
}

#[derive(Debug, Default)]
struct Present {
    requests: usize,
    channels: usize,
}

impl Account {
    /// An account of this name, with limits of concurrent requests, and of requests and channels together.
    pub fn new(name: &str, most_requests: usize, most_connections: usize) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            most_requests,
            most_connections,
            present: Mutex::default(),
            lookups: Arc::default(),
        })
    }

    /// Each present name lookup of the caller holds a clone.
    pub(crate) fn lookups(&self) -> &Arc<()> {
        &self.lookups
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Result<Share, Error> {
        let mut present = self.lock();
        let Present { requests, channels } = *present;
        if requests >= self.most_requests || requests + channels >= self.most_connections {
            let message = format!(
                "{requests} requests and {channels} open channels to other servers are under way \
                 for {}, which is the limit",
                self.name
            );
            return Err(Error::new(Kind::Busy, message));
        }
        present.requests += 1;
        drop(present);
        Ok(Share { account: self.clone(), is_channel: false })
    }
}

/// One request, or one channel.
#[derive(Debug)]
pub(crate) struct Share {
    account: Arc<Account>,
    is_channel: bool,
}

impl Share {
    /// Counts as a channel from now on.
    pub(crate) fn into_channel(mut self) -> Self {
        if self.is_channel {
            return self;
        }
        let mut present = self.account.lock();
        present.requests -= 1;
        present.channels += 1;
        drop(present);
        self.is_channel = true;
        self
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut present = self.account.lock();
        match self.is_channel {
            true => present.channels -= 1,
            false => present.requests -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

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
        let present = account.lock();
        assert_eq!((present.requests, present.channels), (0, 0));
    }

    #[test]
    fn callers_on_several_threads_have_the_limit_together() {
        const COUNT: usize = 4;
        let account = Account::new("a", 6, 8);
        let all = Arc::new(Barrier::new(COUNT));
        let threads = (0..COUNT).map(|_| {
            let (account, all) = (account.clone(), all.clone());
            thread::spawn(move || {
                let shares: Vec<Share> = (0..4).filter_map(|_| account.enter().ok()).collect();
                all.wait();
                shares.len()
            })
        });
        let threads: Vec<_> = threads.collect();
        let entered = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(entered.sum::<usize>(), 6);
        assert_eq!(account.lock().requests, 0);
    }
}
