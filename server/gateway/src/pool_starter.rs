//! [`PoolStarter`]: starts pools of an app, with what the gateway makes for them.
//!
//! Made with each generation, on each thread. Called when a snapshot is renewed, and for each one of classic
//! mode.

use crate::logs::Logs;
use outboard_buffer::Account;
use outboard_php_pool::pool::operations::{ForwardedOperations, Operations};
use outboard_php_pool::pool::{Pool, PoolSettings, Shard};
use outboard_php_pool::{Recent, Rings};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct PoolStarter {
    /// Those of this thread.
    pub(crate) operations: Rc<dyn Operations>,
    /// Whether the lead carries some of them out.
    pub(crate) is_forwarding: bool,
    pub(crate) recent: Rc<Recent>,
    pub(crate) memory: Rc<Account>,
    pub(crate) rings: Rc<Rings>,
    pub(crate) logs: Rc<Logs>,
}

impl PoolStarter {
    /// Starts a pool.
    pub(crate) fn start(&self, settings: PoolSettings, shard: Shard) -> Rc<Pool> {
        let (error, slow) = (self.logs.error.clone(), self.logs.slow.clone());
        let pool = Pool::start(settings, shard.clone(), error, slow, self.rings.clone());
        self.prepare(&pool, shard);
        pool
    }

    /// Gives a pool what it needs, before its first request.
    pub(crate) fn prepare(&self, pool: &Pool, shard: Shard) {
        pool.set_recent(self.recent.clone());
        pool.set_memory(self.memory.clone());
        pool.set_operations(match self.is_forwarding {
            true => ForwardedOperations::before(self.operations.clone(), shard),
            false => self.operations.clone(),
        });
    }
}
