//! Siblings of the zygote: PHP is started once, by the zygote of the first pool, which forks one for
//! the pool of each other thread.
//!
//! Called by the manager of a pool without a zygote, and for [`Message`]s to the first pool. Invariants:
//! the first pool forks siblings only once PHP has started, and keeps requests for them until then; all
//! siblings and their workers die with the first zygote (`PR_SET_PDEATHSIG`).

use super::Pool;
use super::messages::Message;
use outboard_log::Level;
use outboard_supervisor::zygote::{SiblingEnds, Zygote};
use rustix::fd::OwnedFd;

impl Pool {
    /// Requests a zygote from the first pool. It reports its start as one that was executed does.
    pub(super) fn request_sibling(&self) -> Result<(Zygote, OwnedFd), String> {
        let (shard, index) = (self.shard.clone(), self.shard.index());
        let kill = move || shard.send(LEAD, Message::KillZygote { shard: index });
        let sibling = Zygote::sibling(Box::new(kill)).map_err(|error| error.to_string())?;
        let (zygote, output, ends) = sibling;
        self.shard.send(LEAD, Message::Split { shard: index, ends });
        Ok((zygote, output))
    }

    /// Forks a zygote for another shard, now or when PHP has started.
    pub(super) fn split_zygote(&self, shard: usize, ends: SiblingEnds) {
        self.splits.borrow_mut().push((shard, ends));
        self.split_pending();
    }

    /// Forks the zygotes that were requested, if PHP has started.
    pub(super) fn split_pending(&self) {
        let zygote = self.zygote.borrow();
        let Some(zygote) = zygote.as_ref().filter(|_| !self.is_starting()) else { return };
        for (shard, ends) in self.splits.take() {
            let sibling = self.last_sibling.get() + 1;
            self.last_sibling.set(sibling);
            self.siblings.borrow_mut().insert(shard, sibling);
            if let Err(error) = zygote.split(sibling, ends) {
                self.log(Level::Error, &format!("cannot fork the zygote of a thread: {error}"));
            }
        }
    }

    /// Kills the zygote of another shard, which does not carry out its orders.
    pub(super) fn kill_sibling(&self, shard: usize) {
        let sibling = self.siblings.borrow().get(&shard).copied();
        if let (Some(sibling), Some(zygote)) = (sibling, self.zygote.borrow().as_ref())
            && let Err(error) = zygote.kill_sibling(sibling)
        {
            self.log(Level::Error, &format!("cannot kill the zygote of a thread: {error}"));
        }
    }
}

/// The shard whose zygote the others are forked of.
pub(super) const LEAD: usize = 0;
