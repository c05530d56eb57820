//! [`OperationQueue`]: requests of workers to the gateway, and those of workers of other threads.
//!
//! The pool queues `Operation` frames while it polls the rings, and has them begun after that, so that its
//! [`Operations`] may call the pool. Completions go back by the [`Requester`]. Invariants: when a worker has exited
//! its operations are forgotten, after those before have been begun; a worker whose operation makes the gateway
//! panic is the only one that is affected.

mod forwarded;
mod gone;
mod link;
mod remote;
mod requester;

use super::core::PoolCore;
use super::lending::messages::Message;
use super::lending::shards::LEAD;
use super::worker::{PANICKED, Worker};
use crate::budget::Budget;
use crate::script_span;
use crate::worker_id::WorkerId;
use outboard_buffer::Account;
use outboard_log::Level;
use outboard_reactor::{contain, spawn};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Failure, Operation, Part};
use outboard_trace::{Scope, TraceContext};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

pub use forwarded::ForwardedOperations;
pub use gone::Gone;
use link::WorkerLink;
use remote::RemoteWorker;
pub(crate) use requester::NoOperations;
use requester::Way;
pub use requester::{Operations, PIECE_BYTES, Requester};

/// See the module.
#[derive(Debug)]
pub(super) struct OperationQueue {
    link: Rc<WorkerLink>,
    /// What carries operations out.
    operations: RefCell<Rc<dyn Operations>>,
    /// The account of its workers' operations.
    memory: RefCell<Rc<Account>>,
    /// Operations that are not begun yet.
    pending: RefCell<VecDeque<(Requester, Vec<u8>)>>,
    /// Workers that have exited and whose operations are not forgotten yet.
    departed: RefCell<Vec<WorkerId>>,
    /// Workers of other threads whose operations are carried out here.
    remote: RefCell<HashMap<WorkerId, Rc<RemoteWorker>>>,
}

impl OperationQueue {
    /// Refuses all operations until [`Self::set`] is called.
    pub(super) fn new(core: Rc<PoolCore>) -> Self {
        Self {
            link: WorkerLink::new(core),
            operations: RefCell::new(Rc::new(NoOperations)),
            memory: RefCell::new(Account::detached()),
            pending: RefCell::default(),
            departed: RefCell::default(),
            remote: RefCell::default(),
        }
    }

    fn core(&self) -> &PoolCore {
        self.link.core()
    }

    pub(super) fn set(&self, operations: Rc<dyn Operations>) {
        self.operations.replace(operations);
    }

    /// It applies to workers that are forked later.
    pub(super) fn set_memory(&self, account: Rc<Account>) {
        self.memory.replace(account);
    }

    /// The account of its workers' operations.
    pub(super) fn memory(&self) -> Rc<Account> {
        self.memory.borrow().clone()
    }

    /// Whether operations wait to be begun; meanwhile the rings are not polled.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Whether nothing is to be begun or to be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        !self.has_pending() && self.departed.borrow().is_empty()
    }

    /// Whether a worker has operations that are not finished, or not begun.
    pub(super) fn has_any(&self, worker: WorkerId) -> bool {
        let pending = self.pending.borrow();
        pending.iter().any(|(requester, _)| requester.worker() == worker)
            || self.operations.borrow().has_any(worker)
    }

    /// Begins pending operations within the budget. No part of the pool may be borrowed.
    pub(super) fn begin_pending(&self, budget: &mut Budget) {
        debug_assert!(self.core().members.try_borrow_mut().is_ok(), "operations call the pool");
        let operations = self.operations.borrow().clone();
        while !budget.is_spent() {
            let Some((requester, payload)) = self.pending.borrow_mut().pop_front() else { break };
            let id = requester.worker();
            // A malformed one has no id to respond to; the worker's deadline ends its wait.
            let Ok(operation) = Operation::decode(&payload) else { continue };
            if contain(|| operations.begin(requester, &operation)).is_err() {
                let mut members = self.core().members.borrow_mut();
                if members.roster.find(id).is_some() {
                    self.core().kill_for_protocol_error(&mut members, id.slot, PANICKED);
                }
            }
            budget.check_clock();
        }
        if self.has_pending() {
            return;
        }
        for worker in self.departed.take() {
            operations.forget(worker);
        }
    }

    /// Queues an operation until the workers are not borrowed any more. A span is added to its trace at
    /// once: later the request may have ended.
    pub(super) fn queue(&self, worker: &Worker, request: Tag, payload: &[u8]) {
        let trace = worker.trace_of(request);
        let trace = match Operation::decode(payload) {
            Ok(Operation { call: Call::Span(call), .. }) => {
                return script_span::add(trace.as_ref(), &call);
            }
            Ok(Operation { span, .. }) if span != 0 => trace.map(|php| php.part(span)),
            _ => trace,
        };
        let (way, memory) = (Way::Here(Rc::downgrade(&self.link)), worker.memory().clone());
        let context = trace.as_ref().map(Scope::context);
        let is_debugged = self.core().settings.is_debugged;
        let worker = worker.id;
        let requester = Requester { way, worker, request, memory, trace, context, is_debugged };
        self.pending.borrow_mut().push_back((requester, payload.to_vec()));
        self.core().active.list_pool();
    }

    /// A worker has exited or is lent: its operations are forgotten after those before.
    pub(super) fn forget(&self, worker: WorkerId) {
        self.departed.borrow_mut().push(worker);
        self.core().active.list_pool();
    }

    /// A worker is here again.
    pub(super) fn returned(&self, worker: WorkerId) {
        self.departed.borrow_mut().retain(|departed| *departed != worker);
    }

    /// On the lead's thread: begins an operation of a worker of another thread.
    pub(super) fn begin_remote(
        &self,
        thread: usize,
        (worker, request, context): (WorkerId, Tag, Option<TraceContext>),
        payload: &[u8],
    ) {
        let shard = &self.core().shard;
        let new = || RemoteWorker::new(shard, thread, &self.memory.borrow());
        let remote = self.remote.borrow_mut().entry(worker).or_insert_with(new).clone();
        let memory = remote.memory().clone();
        // Before all completions, after which the worker may be lent.
        shard.send(thread, Message::Begun { worker, bytes: payload.len() });
        let (way, trace) = (Way::Remote(remote), None);
        let is_debugged = self.core().settings.is_debugged;
        let requester = Requester { way, worker, request, memory, trace, context, is_debugged };
        let operations = self.operations.borrow().clone();
        // As in `begin_pending`.
        let Ok(operation) = Operation::decode(payload) else { return };
        if contain(|| operations.begin(requester.clone(), &operation)).is_err() {
            let text = "an operation of a worker made the gateway panic";
            self.core().log.log(Level::Error, text);
            let (failure, message) = (Failure::Busy, "the operation made the gateway panic");
            let part = Part::Failed { failure, message };
            // A worker that has exited does not wait for it.
            let _ = requester.send(&Completion { id: operation.id, part });
        }
    }

    /// On the lead's thread: the worker has exited, or another thread has it now.
    pub(super) fn forget_remote(&self, worker: WorkerId) {
        let remote = self.remote.borrow_mut().remove(&worker);
        if let Some(remote) = remote {
            remote.end();
        }
        let operations = self.operations.borrow().clone();
        operations.forget(worker);
    }

    #[cfg(test)]
    pub(super) fn has_no_remote(&self) -> bool {
        self.remote.borrow().is_empty()
    }

    /// On the lead's thread: a worker has read so much.
    pub(super) fn remote_has_read(&self, worker: WorkerId, bytes: usize) {
        if let Some(remote) = self.remote.borrow().get(&worker) {
            remote.delivered(bytes);
        }
    }

    /// On another thread than the lead's: an operation of a worker has been begun.
    pub(super) fn begun(&self, worker: WorkerId, bytes: usize) {
        self.link.operation_begun(worker, bytes);
    }

    /// On another thread than the lead's: a frame for one of its workers.
    pub(super) fn deliver(&self, worker: WorkerId, kind: FrameKind, tag: Tag, payload: &[u8]) {
        if kind == FrameKind::Completion
            && let Ok(completion) = Completion::decode(payload)
        {
            let operations = self.operations.borrow().clone();
            operations.completed(worker, &completion);
        }
        // If it has exited, the lead learns of it by `forget`.
        if self.link.send(worker, kind, tag, payload).is_err() {
            return;
        }
        let (link, bytes) = (self.link.clone(), payload.len());
        let confirm = move |link: &WorkerLink| {
            link.core().shard.send(LEAD, Message::Delivered { worker, bytes });
        };
        if link.has_sent_all(worker) {
            return confirm(&link);
        }
        spawn(async move {
            let _ = std::future::poll_fn(|_| link.poll_room(worker)).await;
            confirm(&link);
        });
    }
}
