//! The rings of all pools, polled by the event loop before it sleeps.

use crate::gateway::Gateway;
use outboard_php_pool::pool::Budget;
use outboard_reactor::MemorySource;
use std::rc::Rc;

/// See the module.
pub(super) struct Rings {
    gateway: Rc<Gateway>,
    /// For the current turn of the loop.
    budget: Budget,
    /// The pool to poll first; it rotates when the budget does not reach all.
    first: usize,
}

impl Rings {
    pub(super) fn new(gateway: Rc<Gateway>) -> Self {
        Self { gateway, budget: Budget::default(), first: 0 }
    }
}

impl MemorySource for Rings {
    fn look(&mut self) -> bool {
        let pools = self.gateway.pools.borrow();
        let mut is_active = false;
        let first = self.first % pools.len().max(1);
        for pool in pools[first..].iter().chain(&pools[..first]) {
            if self.budget.is_spent() {
                return true;
            }
            is_active |= pool.poll_rings(&mut self.budget);
        }
        is_active
    }

    fn prepare_sleep(&mut self) -> u64 {
        self.gateway
            .pools
            .borrow()
            .iter()
            .fold(u64::MAX, |earliest_ms, pool| earliest_ms.min(pool.prepare_sleep()))
    }

    fn cancel_sleep(&mut self) {
        self.gateway.pools.borrow().iter().for_each(|pool| pool.cancel_sleep());
        self.first = self.first.wrapping_add(usize::from(self.budget.is_spent()));
        self.budget = Budget::default();
    }
}
