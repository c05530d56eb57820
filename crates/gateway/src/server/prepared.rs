//! [`Prepared`]: a generation that is not active yet.
//!
//! Held by each thread from the time that it has opened it until all threads are ready. Invariant: unless
//! it is activated, all of its processes end.

use crate::generation::Generation;
use crate::logs::Sinks;
use outboard_php_pool::pool::Pool;
use outboard_php_pool::tasks::Tasks;
use std::rc::Rc;

/// See the module.
pub(super) struct Prepared {
    pub(super) generation: Generation,
    sinks: Sinks,
    processes: Processes,
}

impl Prepared {
    pub(super) fn new(generation: Generation, sinks: Sinks) -> Self {
        let (pools, tasks) = (generation.pools().cloned(), generation.tasks().cloned());
        let processes = Processes { pools: pools.collect(), tasks: tasks.collect() };
        Self { generation, sinks, processes }
    }

    /// The generation and its logs, to be activated.
    pub(super) fn activate(self) -> (Generation, Sinks) {
        let Self { generation, sinks, mut processes } = self;
        processes.pools.clear();
        processes.tasks.clear();
        (generation, sinks)
    }
}

/// What ends with a generation that is given up.
struct Processes {
    pools: Vec<Rc<Pool>>,
    tasks: Vec<Rc<Tasks>>,
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.tasks.iter().for_each(|tasks| tasks.stop());
        self.pools.iter().for_each(|pool| pool.retire(0));
    }
}
