//! Tasks as operations of workers: the calls, and completions with their results.
//!
//! Called by the gateway with the operations of the app's workers. Invariant: memory for a long result is counted until the worker has read it.

use super::Tasks;
use super::queue::{Settlement, Task};
use crate::pool::operations::{PIECE_BYTES, Requester};
use crate::worker_id::WorkerId;
use outboard_log::Level;
use outboard_reactor::spawn;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Completion, Failure, FetchedHead, Part};

/// Refuses the task of an app without task workers.
pub fn refuse(requester: &Requester, id: Tag) {
    let message = "the app has no task workers: set workers in its [tasks]";
    fail(requester, id, Failure::Busy, message);
}

impl Tasks {
    /// Forgets the tasks of a worker that has exited, of which data are missing.
    pub fn forget(&self, worker: WorkerId) {
        self.incoming.borrow_mut().retain(|(requester, _), _| *requester != worker);
    }

    /// Whether a worker waits for the result of a task, or has not sent all of its data.
    pub fn has_any(&self, worker: WorkerId) -> bool {
        let is_awaited =
            self.current().awaited.borrow().values().any(|(one, _)| one.worker() == worker);
        is_awaited || self.incoming.borrow().keys().any(|(requester, _)| *requester == worker)
    }

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
