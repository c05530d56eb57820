//! [`StartedPools`]: the pools of a generation that is being opened.
//!
//! Filled by the generation's builder. Invariant: they are retired unless the generation is committed.

use crate::logs::Logs;
use outboard_php_pool::Rings;
use outboard_php_pool::pool::{Pool, PoolSettings, Shard};
use outboard_php_pool::renewal::seat::PoolSeat;
use std::cell::RefCell;
use std::rc::Rc;

/// See the module.
pub(super) struct StartedPools {
    rings: Rc<Rings>,
    pools: RefCell<Vec<Rc<Pool>>>,
    pub(super) seats: RefCell<Vec<Rc<PoolSeat>>>,
}

impl StartedPools {
    pub(super) fn new(rings: Rc<Rings>) -> Self {
        Self { rings, pools: RefCell::default(), seats: RefCell::default() }
    }

    pub(super) fn start(&self, settings: PoolSettings, shard: Shard, logs: &Logs) -> Rc<Pool> {
        let (error, slow) = (logs.error.clone(), logs.slow.clone());
        let pool = Pool::start(settings, shard, error, slow, self.rings.clone());
        self.pools.borrow_mut().push(pool.clone());
        pool
    }

    /// The generation is complete.
    pub(super) fn commit(self) {
        self.pools.take();
        self.seats.take();
    }
}

impl Drop for StartedPools {
    fn drop(&mut self) {
        self.seats.take().iter().for_each(|seat| seat.retire(0));
        self.pools.take().iter().for_each(|pool| pool.retire(0));
    }
}
