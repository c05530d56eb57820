//! Tasks as operations of workers: the calls.
//!
//! Set by the gateway as the operations of the app's pools. Invariant: an operation that is not a task
//! is passed on unchanged.

use super::Tasks;
use super::incoming::Data;
use super::replies::fail;
use crate::pool::operations::{Operations, Requester};
use crate::worker_id::WorkerId;
use outboard_ring::operation::{Call, Failure, Operation};
use std::rc::Rc;

/// The operations of an app: its tasks, and those that `others` carry out.
pub fn operations(others: Rc<dyn Operations>, tasks: Option<Rc<Tasks>>) -> Rc<dyn Operations> {
    match tasks {
        None => Rc::new(NoTasks(others)),
        Some(tasks) => {
            tasks.others.replace(Some(others));
            tasks
        }
    }
}

impl Operations for Tasks {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        let is_task = match &operation.call {
            Call::Task(call) => {
                let complete = self.incoming.begin(requester.clone(), operation.id, call);
                if let Some(task) = complete {
                    self.current().accept(operation.id, task);
                }
                true
            }
            Call::FetchBody(bytes) => {
                match self.incoming.add_data(requester.worker(), operation.id, bytes) {
                    Data::Unknown => false,
                    Data::Stored => true,
                    Data::Complete(task) => {
                        self.current().accept(operation.id, *task);
                        true
                    }
                }
            }
            _ => false,
        };
        if !is_task && let Some(others) = &*self.others.borrow() {
            others.begin(requester, operation);
        }
    }

    fn forget(&self, worker: WorkerId) {
        self.incoming.forget(worker);
        if let Some(others) = &*self.others.borrow() {
            others.forget(worker);
        }
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        let is_awaited =
            self.current().awaited.borrow().values().any(|(one, _)| one.worker() == worker);
        let others = self.others.borrow();
        is_awaited
            || self.incoming.has_any(worker)
            || others.as_ref().is_some_and(|others| others.has_any(worker))
    }
}

/// Refuses the tasks of an app without task workers.
#[derive(Debug)]
struct NoTasks(Rc<dyn Operations>);

impl Operations for NoTasks {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        if let Call::Task(_) = operation.call {
            let message = "the app has no task workers: set workers in its [tasks]";
            return fail(&requester, operation.id, Failure::Busy, message);
        }
        self.0.begin(requester, operation);
    }

    fn forget(&self, worker: WorkerId) {
        self.0.forget(worker);
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        self.0.has_any(worker)
    }
}
