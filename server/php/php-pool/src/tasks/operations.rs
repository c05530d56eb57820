//! Tasks as operations of workers: the calls.
//!
//! Called by the gateway with the operations of the app's workers. Invariant: a call of an app without task workers
//! is refused, and not lost (by its type: without them there are no [`Tasks`] to call, only [`refuse`]).

use super::Tasks;
use super::incoming::Data;
use super::replies::fail;
use crate::pool::operations::Requester;
use crate::worker_id::WorkerId;
use outboard_ring::frame::Tag;
use outboard_ring::operation::Failure;
use outboard_ring::task::TaskCall;

/// Refuses the task of an app without task workers.
pub fn refuse(requester: &Requester, id: Tag) {
    let message = "the app has no task workers: set workers in its [tasks]";
    fail(requester, id, Failure::Busy, message);
}

impl Tasks {
    /// Begins to receive a task.
    pub fn receive_call(&self, requester: Requester, id: Tag, call: &TaskCall<'_>) {
        if let Some(task) = self.incoming.begin(requester, id, call) {
            self.current().accept(id, task);
        }
    }

    /// Receives data of a task. Returns whether there is a task with this id.
    pub fn receive_data(&self, worker: WorkerId, id: Tag, bytes: &[u8]) -> bool {
        match self.incoming.add_data(worker, id, bytes) {
            Data::Unknown => return false,
            Data::Stored => {}
            Data::Complete(task) => self.current().accept(id, *task),
        }
        true
    }

    /// Forgets the tasks of a worker that has exited, of which data are missing.
    pub fn forget(&self, worker: WorkerId) {
        self.incoming.forget(worker);
    }

    /// Whether a worker waits for the result of a task, or has not sent all of its data.
    pub fn has_any(&self, worker: WorkerId) -> bool {
        let is_awaited =
            self.current().awaited.borrow().values().any(|(one, _)| one.worker() == worker);
        is_awaited || self.incoming.has_any(worker)
    }
}
