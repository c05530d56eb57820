//! Tasks that are accepted into the queue: those of workers, and those of the clock.
//!
//! A part of [`Tasks`]. Invariant: a task that has to be journaled is accepted after its record is written.

use super::incoming::IncomingTask;
use super::journal::TaskJournal;
use super::queue::Task;
use super::replies::{fail, send_result};
use super::{STOPPING, Tasks};
use crate::pool::operations::Requester;
use outboard_reactor::{now_ms, spawn};
use outboard_ring::frame::Tag;
use outboard_ring::operation::Failure;
use std::rc::Rc;

impl Tasks {
    pub(super) fn accept(&self, operation: Tag, task: IncomingTask) {
        let IncomingTask {
            requester, name, data, delay_ms, is_awaited, retries, held: _held, ..
        } = task;
        let (trace, is_debugged) = (requester.context(), requester.is_debugged());
        let task = Task { trace, is_debugged, ..self.new_task(&name, data, retries) };
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
            debug_assert!(unfinished.borrow().contains(&id), "a recovery would queue it again");
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
