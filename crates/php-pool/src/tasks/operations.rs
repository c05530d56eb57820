//! Tasks as operations of workers: the calls, and completions with their results.
//!
//! Set by the gateway as the operations of the app's pools. Invariants: an operation that is not a task
//! is passed on unchanged; memory for a long result is counted until the worker has read it.

use super::Tasks;
use super::queue::{Settlement, Task};
use crate::pool::operations::{Operations, PIECE_BYTES, Requester};
use crate::worker_id::WorkerId;
use outboard_log::Level;
use outboard_reactor::spawn;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, Completion, Failure, FetchedHead, Operation, Part};
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
                self.receive_call(requester.clone(), operation.id, call);
                true
            }
            Call::FetchBody(bytes) => self.receive_data(requester.worker(), operation.id, bytes),
            _ => false,
        };
        if !is_task && let Some(others) = &*self.others.borrow() {
            others.begin(requester, operation);
        }
    }

    fn forget(&self, worker: WorkerId) {
        self.incoming.borrow_mut().retain(|(requester, _), _| *requester != worker);
        if let Some(others) = &*self.others.borrow() {
            others.forget(worker);
        }
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        let is_awaited =
            self.current().awaited.borrow().values().any(|(one, _)| one.worker() == worker);
        let is_incoming = self.incoming.borrow().keys().any(|(requester, _)| *requester == worker);
        let others = self.others.borrow();
        is_awaited || is_incoming || others.as_ref().is_some_and(|others| others.has_any(worker))
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

impl Tasks {
    /// Sends the result of a finished task to its requester, if that waits, and logs a failure.
    pub(super) fn report_result(
        &self,
        task: &Task,
        settlement: Settlement,
        requester: Option<(Requester, Tag)>,
        text: &[u8],
    ) {
        let message = String::from_utf8_lossy(text);
        if settlement == Settlement::GivenUp {
            let name = String::from_utf8_lossy(&task.name);
            let (id, attempts) = (task.id, task.attempts);
            let line = format!("task {name} {id:016x} given up at attempt {attempts}: {message}");
            self.log(Level::Error, &line);
        }
        match requester {
            Some((requester, operation)) if settlement == Settlement::Done => {
                send_result(&requester, operation, text)
            }
            Some((requester, operation)) => fail(&requester, operation, Failure::Task, &message),
            None => {}
        }
    }
}

pub(super) fn fail(requester: &Requester, id: Tag, failure: Failure, message: &str) {
    // A worker that has exited does not wait for it.
    let _ = requester.send(&Completion { id, part: Part::Failed { failure, message } });
}

/// Sends a result in the form of a fetched response; a long one as the worker reads it.
pub(super) fn send_result(requester: &Requester, id: Tag, text: &[u8]) {
    let head = FetchedHead { status: 200, http_version: 1, url: b"", headers: b"" };
    if text.len() <= PIECE_BYTES {
        // As above.
        let _ = requester.send(&Completion { id, part: Part::Whole(head, text) });
        return;
    }
    let Some(held) = requester.memory().try_hold(text.len()) else {
        let message = "the result exceeds the memory for operations; see limits.memory";
        return fail(requester, id, Failure::TooLarge, message);
    };
    let (requester, text) = (requester.clone(), text.to_vec());
    spawn(async move {
        // As above.
        let _ = requester.send_whole(id, head, std::iter::once(&text[..])).await;
        drop(held);
    });
}
