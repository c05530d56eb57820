//! [`Siblings`] of the zygote: PHP is started once, by the zygote of the first pool, which forks one for
//! the pool of each other thread.
//!
//! Owned by each pool; the first one's has the zygotes of the others. Invariants: the first pool forks siblings
//! only once PHP has started, and keeps requests for them until then; all siblings and their workers die with the
//! first zygote (`PR_SET_PDEATHSIG`).

use super::messages::Message;
use super::shards::{LEAD, Shard};
use outboard_supervisor::zygote::{SiblingEnds, Zygote};
use rustix::fd::OwnedFd;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::pool) struct Siblings {
    /// Shards that wait for a zygote.
    waiting: RefCell<Vec<(usize, SiblingEnds)>>,
    /// The zygotes of other shards, and the last number of one.
    numbers: RefCell<HashMap<usize, u64>>,
    last: Cell<u64>,
}

impl Siblings {
    /// Requests a zygote from the first pool. It reports its start as one that was executed does.
    pub(in crate::pool) fn request(shard: &Shard) -> Result<(Zygote, OwnedFd), String> {
        let (sender, index) = (shard.clone(), shard.index());
        let kill = move || sender.send(LEAD, Message::KillZygote { shard: index });
        let sibling = Zygote::sibling(Box::new(kill)).map_err(|error| error.to_string())?;
        let (zygote, output, ends) = sibling;
        shard.send(LEAD, Message::Split { shard: index, ends });
        Ok((zygote, output))
    }

    /// Another shard needs a zygote.
    pub(in crate::pool) fn add(&self, shard: usize, ends: SiblingEnds) {
        debug_assert_ne!(shard, LEAD, "the first zygote is no sibling");
        self.waiting.borrow_mut().push((shard, ends));
    }

    /// Whether a shard waits for its zygote.
    pub(in crate::pool) fn has_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Forks the zygotes that were requested; PHP has started. Returns why some could not be.
    pub(in crate::pool) fn fork_waiting(&self, zygote: &Zygote) -> Vec<io::Error> {
        let mut errors = Vec::new();
        for (shard, ends) in self.waiting.take() {
            let number = self.last.get() + 1;
            self.last.set(number);
            self.numbers.borrow_mut().insert(shard, number);
            errors.extend(zygote.split(number, ends).err());
        }
        errors
    }

    /// Kills the zygote of another shard, which does not carry out its orders.
    pub(in crate::pool) fn kill(&self, shard: usize, zygote: &Zygote) -> io::Result<()> {
        let number = self.numbers.borrow().get(&shard).copied();
        number.map_or(Ok(()), |number| zygote.kill_sibling(number))
    }
}
