//! Tasks that workers dispatch, until they are queued.
//!
//! Called for each operation of a worker; new tasks of the clock are created here as well. Invariant: a
//! task that has to be journaled is accepted after its record is written.

use super::journal::TaskJournal;
use super::operations::{fail, send_result};
use super::queue::Task;
use super::{MAX_DATA_BYTES, STOPPING, Tasks};
use crate::pool::operations::Requester;
use crate::worker_id::WorkerId;
use outboard_buffer::Held;
use outboard_reactor::{now_ms, spawn};
use outboard_ring::frame::Tag;
use outboard_ring::operation::Failure;
use outboard_ring::task::TaskCall;
use std::rc::Rc;

/// The same limit as in the host. The record of a task has room for 64 KiB.
const MAX_NAME_BYTES: usize = 255;
/// The memory of a task in addition to its name and data.
const TASK_BYTES: usize = 1024;

/// A task whose data has not arrived completely.
#[derive(Debug)]
pub(super) struct IncomingTask {
    requester: Requester,
    name: Vec<u8>,
    data: Vec<u8>,
    data_bytes: usize,
    delay_ms: u64,
    is_awaited: bool,
    retries: Option<u8>,
    /// Its memory, until the queue counts it.
    held: Held,
}

impl Tasks {
    /// Begins to receive a task.
    pub fn receive_call(&self, requester: Requester, id: Tag, call: &TaskCall<'_>) {
        if call.name.len() > MAX_NAME_BYTES {
            return fail(&requester, id, Failure::BadCall, "its name is longer than 255 bytes");
        }
        let data_bytes = call.data_bytes as usize;
        if data_bytes > MAX_DATA_BYTES {
            return fail(&requester, id, Failure::TooLarge, "its data is larger than 16 MiB");
        }
        let Some(held) = requester.memory().try_hold(TASK_BYTES + data_bytes) else {
            let message = "the memory for operations is exhausted; see limits.memory";
            return fail(&requester, id, Failure::Busy, message);
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
        match data_bytes {
            0 => self.current().accept(id, task),
            _ => drop(self.incoming.borrow_mut().insert((task.requester.worker(), id), task)),
        }
    }

    /// Receives data of a task. Returns whether there is a task with this id.
    pub fn receive_data(&self, worker: WorkerId, id: Tag, bytes: &[u8]) -> bool {
        let mut incoming = self.incoming.borrow_mut();
        let Some(task) = incoming.get_mut(&(worker, id)) else { return false };
        let taken = bytes.len().min(task.data_bytes - task.data.len());
        if task.data.is_empty() {
            // Exactly the counted memory; growing would use up to twice that.
            task.data.reserve_exact(task.data_bytes);
        }
        task.data.extend_from_slice(&bytes[..taken]);
        if task.data.len() == task.data_bytes
            && let Some(task) = incoming.remove(&(worker, id))
        {
            drop(incoming);
            self.current().accept(id, task);
        }
        true
    }

    fn accept(&self, operation: Tag, task: IncomingTask) {
        let IncomingTask {
            requester, name, data, delay_ms, is_awaited, retries, held: _held, ..
        } = task;
        let task = Task { trace: requester.context(), ..self.new_task(&name, data, retries) };
        let id = task.id;
        // An awaited task is not journaled: its requester would not survive a restart.
        if let Some(journal) = self.journal.clone().filter(|_| !is_awaited) {
            return self.accept_journaled(journal, task, delay_ms, requester, operation);
        }
        if !self.enqueue(task, delay_ms) {
            return self.refuse(&requester, operation);
        }
        match is_awaited {
            true => drop(self.awaited.borrow_mut().insert(id, (requester, operation))),
            false => {
                self.pass_on();
                send_result(&requester, operation, format!("{id:016x}").as_bytes());
            }
        }
    }

    /// Accepts a task once its record is written.
    fn accept_journaled(
        &self,
        journal: Rc<TaskJournal>,
        task: Task,
        delay_ms: u64,
        requester: Requester,
        operation: Tag,
    ) {
        if self.stopped.get() || self.queue.borrow_mut().reserve(&task).is_err() {
            self.counters.borrow_mut().refused += 1;
            return self.refuse(&requester, operation);
        }
        let tasks = self.weak_self.upgrade().expect("the caller holds it");
        let unfinished = self.unfinished.borrow().clone();
        unfinished.borrow_mut().insert(task.id);
        spawn(async move {
            let (id, written) = (task.id, journal.put(&task, delay_ms).await);
            tasks.queue.borrow_mut().release(&task);
            // A reload may have happened meanwhile.
            let current = tasks.current();
            if let Err(error) = written {
                unfinished.borrow_mut().remove(&id);
                current.counters.borrow_mut().refused += 1;
                let message = format!("it cannot be stored: {error}");
                return fail(&requester, operation, Failure::Busy, &message);
            }
            current.queue.borrow_mut().insert(task, now_ms().saturating_add(delay_ms));
            current.counters.borrow_mut().accepted += 1;
            current.changed.set();
            current.pass_on();
            send_result(&requester, operation, format!("{id:016x}").as_bytes());
            if current.stopped.get() {
                current.stop();
            }
        });
    }

    fn refuse(&self, requester: &Requester, operation: Tag) {
        let message = if self.stopped.get() { STOPPING } else { "the queue of tasks is full" };
        fail(requester, operation, Failure::Busy, message);
    }

    pub(super) fn new_task(&self, name: &[u8], data: Vec<u8>, retries: Option<u8>) -> Task {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        Task::new(id, name, data, retries.unwrap_or(self.config.max_retries))
    }

    /// Queues a task. Returns whether there is room for it.
    pub(super) fn enqueue(&self, task: Task, delay_ms: u64) -> bool {
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
