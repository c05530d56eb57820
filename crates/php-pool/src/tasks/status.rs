//! The state of an app's tasks, for `outboard status`.

use super::Tasks;
use outboard_admin_api::status as api;

impl Tasks {
    /// Counts for `outboard status` and the metrics.
    pub fn status(&self) -> api::Tasks {
        let (queue, counters) = (self.queue.borrow(), *self.counters.borrow());
        api::Tasks {
            app: self.app.clone(),
            waiting: queue.waiting(),
            running: queue.running(),
            bytes: queue.bytes(),
            accepted: counters.accepted,
            refused: counters.refused,
            done: counters.done,
            retried: counters.retried,
            lost: counters.lost,
            given_up: counters.given_up,
        }
    }
}
