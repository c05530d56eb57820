//! [`Prepared`]: a generation that is not active yet.
//!
//! Held by each thread from the time that it has opened it until all threads are ready. Invariant: unless
//! it is activated, all of its processes end.

use crate::app::App;
use crate::generation::Generation;
use crate::logs::Sinks;
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
        let (apps, tasks) = (generation.apps.iter().cloned(), generation.tasks().cloned());
        let processes = Processes { apps: apps.collect(), tasks: tasks.collect() };
        Self { generation, sinks, processes }
    }

    /// The generation and its logs, to be activated.
    pub(super) fn activate(self) -> (Generation, Sinks) {
        let Self { generation, sinks, mut processes } = self;
        processes.apps.clear();
        processes.tasks.clear();
        (generation, sinks)
    }
}

/// What ends with a generation that is given up.
struct Processes {
    apps: Vec<Rc<App>>,
    tasks: Vec<Rc<Tasks>>,
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.tasks.iter().for_each(|tasks| tasks.stop());
        self.apps.iter().for_each(|app| app.retire_pools(0));
    }
}
