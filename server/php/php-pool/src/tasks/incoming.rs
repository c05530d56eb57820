//! [`IncomingTasks`]: tasks that workers dispatch, until their data has arrived.
//!
//! Owned by [`Tasks`](super::Tasks), which accepts those that are complete. Invariant: the memory of a task is counted
//! before its data comes.

use super::queue::MAX_DATA_BYTES;
use super::replies::fail;
use crate::pool::operations::Requester;
use crate::worker_id::WorkerId;
use outboard_buffer::Held;
use outboard_ring::frame::Tag;
use outboard_ring::operation::Failure;
use outboard_ring::task::TaskCall;
use std::cell::RefCell;
use std::collections::HashMap;

/// The same limit as in the host. The record of a task has room for 64 KiB.
const MAX_NAME_BYTES: usize = 255;
/// The memory of a task in addition to its name and data.
const TASK_BYTES: usize = 1024;

/// A task that is not queued yet.
#[derive(Debug)]
pub(super) struct IncomingTask {
    pub(super) requester: Requester,
    pub(super) name: Vec<u8>,
    pub(super) data: Vec<u8>,
    data_bytes: usize,
    pub(super) delay_ms: u64,
    pub(super) is_awaited: bool,
    pub(super) retries: Option<u8>,
    /// Its memory, until the queue counts it.
    pub(super) held: Held,
}

/// What became of data.
pub(super) enum Data {
    /// There is no task that waits for it.
    Unknown,
    Stored,
    /// It was the last of its task.
    Complete(Box<IncomingTask>),
}

/// See the module. By the worker and its operation.
#[derive(Debug, Default)]
pub(super) struct IncomingTasks(RefCell<HashMap<(WorkerId, Tag), IncomingTask>>);

impl IncomingTasks {
    /// Begins to receive a task; returns it if it has no data.
    pub(super) fn begin(
        &self,
        requester: Requester,
        id: Tag,
        call: &TaskCall<'_>,
    ) -> Option<IncomingTask> {
        let refused = |failure, message| {
            fail(&requester, id, failure, message);
            None
        };
        if call.name.len() > MAX_NAME_BYTES {
            return refused(Failure::BadCall, "its name is longer than 255 bytes");
        }
        let data_bytes = call.data_bytes as usize;
        if data_bytes > MAX_DATA_BYTES {
            return refused(Failure::TooLarge, "its data is larger than 16 MiB");
        }
        let Some(held) = requester.memory().try_hold(TASK_BYTES + data_bytes) else {
            let message = "the memory for operations is exhausted; see limits.memory";
            return refused(Failure::Busy, message);
        };
        let task = IncomingTask {
            held,
            requester,
            name: call.name.to_vec(),
            data: Vec::new(),
            data_bytes,
            delay_ms: call.delay_ms,
            is_awaited: call.is_awaited,
            retries: call.retries,
        };
        if data_bytes == 0 {
            return Some(task);
        }
        self.0.borrow_mut().insert((task.requester.worker(), id), task);
        None
    }

    /// Receives data of a task.
    pub(super) fn add_data(&self, worker: WorkerId, id: Tag, bytes: &[u8]) -> Data {
        let mut incoming = self.0.borrow_mut();
        let Some(task) = incoming.get_mut(&(worker, id)) else { return Data::Unknown };
        let taken = bytes.len().min(task.data_bytes - task.data.len());
        if task.data.is_empty() {
            // Exactly the counted memory; growing would use up to twice that.
            task.data.reserve_exact(task.data_bytes);
        }
        task.data.extend_from_slice(&bytes[..taken]);
        debug_assert!(task.data.capacity() <= task.held.bytes(), "it has more than was counted");
        if task.data.len() < task.data_bytes {
            return Data::Stored;
        }
        incoming.remove(&(worker, id)).map_or(Data::Unknown, |task| Data::Complete(Box::new(task)))
    }

    /// A worker has exited: its tasks remain incomplete.
    pub(super) fn forget(&self, worker: WorkerId) {
        self.0.borrow_mut().retain(|(requester, _), _| *requester != worker);
    }

    /// Whether a worker sends the data of a task.
    pub(super) fn has_any(&self, worker: WorkerId) -> bool {
        self.0.borrow().keys().any(|(requester, _)| *requester == worker)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}
