//! Tasks that workers ask for, until they are in the queue.
//!
//! Called for each operation of a worker, and by the clock. Invariant: a task that is to be written
//! down is accepted when it has been.

use super::journal::TaskJournal;
use super::queue::Task;
use super::{DATA_MAX_BYTES, STOPPING, Tasks, fail, tell};
use crate::pool::operations::Requester;
use crate::worker_id::WorkerId;
use outboard_buffer::Held;
use outboard_reactor::{now_ms, spawn};
use outboard_ring::frame::Tag;
use outboard_ring::operation::Failure;
use outboard_ring::task::TaskCall;
use std::rc::Rc;

/// What the host takes as well; a task that is written down has room for no more than 64 KiB.
const NAME_MAX_BYTES: usize = 255;

/// A task whose data have not all come.
#[derive(Debug)]
pub(super) struct IncomingTask {
    pub(super) requester: Requester,
    name: Vec<u8>,
    data: Vec<u8>,
    data_bytes: usize,
    delay_ms: u64,
    is_awaited: bool,
    retries: Option<u8>,
    /// Its memory, until the queue counts it.
    held: Held,
}

/// What a task takes beside its name and data.
const TASK_BYTES: usize = 1024;

impl Tasks {
    pub(super) fn take(&self, requester: Requester, id: Tag, call: &TaskCall<'_>) {
        if call.name.len() > NAME_MAX_BYTES {
            return fail(&requester, id, Failure::BadCall, "its name is longer than 255 bytes");
        }
        let data_bytes = call.data_bytes as usize;
        if data_bytes > DATA_MAX_BYTES {
            return fail(&requester, id, Failure::TooLarge, "its data are larger than 16 MiB");
        }
        let Some(held) = requester.memory().try_hold(TASK_BYTES + data_bytes) else {
            let why = "what is held in memory for the worker's or the app's calls is as much as may \
                       be; see limits.memory";
            return fail(&requester, id, Failure::Busy, why);
        };
        let coming = IncomingTask {
            held,
            requester,
            name: call.name.to_vec(),
            data: Vec::new(),
            data_bytes,
            delay_ms: call.delay_ms,
            is_awaited: call.is_awaited,
            retries: call.retries,
        };
        match data_bytes {
            0 => self.present().accept(id, coming),
            _ => drop(self.coming.borrow_mut().insert((coming.requester.worker(), id), coming)),
        }
    }

    /// Whether the bytes are of a task.
    pub(super) fn take_data(&self, worker: WorkerId, id: Tag, bytes: &[u8]) -> bool {
        let mut all = self.coming.borrow_mut();
        let Some(coming) = all.get_mut(&(worker, id)) else { return false };
        let taken = bytes.len().min(coming.data_bytes - coming.data.len());
        if coming.data.is_empty() {
            // As much as is counted, where growing would take up to twice that.
            coming.data.reserve_exact(coming.data_bytes);
        }
        coming.data.extend_from_slice(&bytes[..taken]);
        if coming.data.len() == coming.data_bytes
            && let Some(coming) = all.remove(&(worker, id))
        {
            drop(all);
            self.present().accept(id, coming);
        }
        true
    }

    fn accept(&self, operation: Tag, coming: IncomingTask) {
        let IncomingTask {
            requester, name, data, delay_ms, is_awaited, retries, held: _held, ..
        } = coming;
        let task = self.make(&name, data, retries);
        let id = task.id;
        // Who waits for a result is gone with the gateway, and so is the wish for it.
        if let Some(journal) = self.journal.clone().filter(|_| !is_awaited) {
            return self.write_down(journal, task, delay_ms, requester, operation);
        }
        if !self.push(task, delay_ms) {
            return self.refuse(&requester, operation);
        }
        match is_awaited {
            true => drop(self.awaited.borrow_mut().insert(id, (requester, operation))),
            false => tell(&requester, operation, format!("{id:016x}").as_bytes()),
        }
    }

    /// Accepts a task once it has been written down.
    fn write_down(
        &self,
        journal: Rc<TaskJournal>,
        task: Task,
        delay_ms: u64,
        requester: Requester,
        operation: Tag,
    ) {
        if self.stopped.get() || self.queue.borrow_mut().expect(&task).is_err() {
            self.counters.borrow_mut().refused += 1;
            return self.refuse(&requester, operation);
        }
        let tasks = self.me.upgrade().expect("whoever calls holds it");
        spawn(async move {
            let (id, written) = (task.id, journal.put(&task, delay_ms).await);
            tasks.queue.borrow_mut().arrive(&task);
            // A reload may have come meanwhile.
            let present = tasks.present();
            if let Err(error) = written {
                present.counters.borrow_mut().refused += 1;
                let why = format!("it cannot be written down: {error}");
                return fail(&requester, operation, Failure::Busy, &why);
            }
            present.queue.borrow_mut().put(task, now_ms().saturating_add(delay_ms));
            present.counters.borrow_mut().accepted += 1;
            present.changed.set();
            tell(&requester, operation, format!("{id:016x}").as_bytes());
            if present.stopped.get() {
                present.stop();
            }
        });
    }

    fn refuse(&self, requester: &Requester, operation: Tag) {
        let why = if self.stopped.get() { STOPPING } else { "the queue of tasks is full" };
        fail(requester, operation, Failure::Busy, why);
    }

    pub(super) fn make(&self, name: &[u8], data: Vec<u8>, retries: Option<u8>) -> Task {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        Task::new(id, name, data, retries.unwrap_or(self.config.max_retries))
    }

    /// Queues a task; false without room for it.
    pub(super) fn push(&self, task: Task, delay_ms: u64) -> bool {
        let due_ms = now_ms().saturating_add(delay_ms);
        let accepted = !self.stopped.get() && self.queue.borrow_mut().accept(task, due_ms).is_ok();
        let mut counters = self.counters.borrow_mut();
        if accepted {
            counters.accepted += 1;
            self.changed.set();
        } else {
            counters.refused += 1;
        }
        accepted
    }
}
