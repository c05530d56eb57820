//! [`TasksStatus`]: what the status page says of an app's tasks.

use super::Tasks;
use serde::Serialize;

/// The tasks of an app, for the status page.
#[derive(Debug, Serialize)]
pub(crate) struct TasksStatus {
    /// The app.
    pub app: String,
    /// Tasks that wait, some of them for their time.
    pub waiting: usize,
    /// Tasks that run.
    pub running: usize,
    /// Memory of both.
    pub bytes: u64,
    /// Tasks that were taken since start.
    pub accepted: u64,
    /// Tasks that found the queue full.
    pub refused: u64,
    /// Tasks that succeeded.
    pub done: u64,
    /// Failed attempts that are tried again.
    pub retried: u64,
    /// Attempts that a worker's end cut short.
    pub lost: u64,
    /// Tasks whose attempts are used up.
    pub given_up: u64,
}

impl Tasks {
    pub(crate) fn status(&self) -> TasksStatus {
        let (queue, counters) = (self.queue.borrow(), *self.counters.borrow());
        TasksStatus {
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
