//! Operations that one thread of the server carries out for all: tasks and the key-value store.
//!
//! The pools of the other threads pass such operations to the pool of the same app on the lead's
//! thread, and pass its completions to their workers. Invariants: to the operations of the lead a
//! requester of another thread is like one of its own; no more bytes are on their way to a worker than
//! [`MAX_UNDER_WAY_BYTES`] and one completion; a worker whose operations the lead has not begun is not
//! read (`Worker::is_behind`); if the lead's pool is gone an operation fails at once.

use super::{Gone, Operations, Requester, Way};
use crate::pool::Pool;
use crate::pool::messages::Message;
use crate::pool::shards::Shard;
use crate::pool::siblings::LEAD;
use crate::worker_id::WorkerId;
use outboard_buffer::Account;
use outboard_log::Level;
use outboard_reactor::{TaskId, contain, current_task, spawn, wake};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Failure, Operation, Part};
use outboard_trace::TraceContext;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::task::Poll;

/// Completions that a worker of another thread has not read yet.
const MAX_UNDER_WAY_BYTES: usize = 128 << 10;
/// The share of the pool's memory for operations that those of one worker may hold, in eighths.
const MEMORY_EIGHTHS: usize = 2;

/// On another thread than the lead's: the operations of an app's workers.
#[derive(Debug)]
pub struct ForwardedOperations {
    shard: Shard,
    /// The operations that the lead carries out now.
    open: RefCell<HashMap<WorkerId, HashSet<Tag>>>,
    others: Rc<dyn Operations>,
}

/// On the lead's thread: a worker of another thread.
#[derive(Debug)]
pub(crate) struct RemoteWorker {
    shard: Shard,
    /// The shard that has it.
    holder: usize,
    under_way_bytes: Cell<usize>,
    waiting: RefCell<Vec<TaskId>>,
    is_gone: Cell<bool>,
    memory: Rc<Account>,
}

impl ForwardedOperations {
    /// The operations of a shard that is not the lead's; `others` carries out those that are not
    /// forwarded.
    pub fn before(others: Rc<dyn Operations>, shard: Shard) -> Rc<Self> {
        Rc::new(Self { shard, open: RefCell::default(), others })
    }

    /// Whether the lead carries it out.
    fn is_forwarded(&self, worker: WorkerId, operation: &Operation<'_>) -> bool {
        match operation.call {
            Call::Task(_) | Call::Entities(_) => true,
            Call::FetchBody(_) | Call::Forget => self.is_open(worker, operation.id),
            Call::Fetch(_)
            | Call::Rate(_)
            | Call::Purge(_)
            | Call::RetireSnapshot(_)
            | Call::Stream(_)
            | Call::Span(_) => false,
        }
    }

    fn is_open(&self, worker: WorkerId, id: Tag) -> bool {
        self.open.borrow().get(&worker).is_some_and(|open| open.contains(&id))
    }
}

impl Operations for ForwardedOperations {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        let (worker, id) = (requester.worker, operation.id);
        if !self.is_forwarded(worker, operation) {
            return self.others.begin(requester, operation);
        }
        let mut open = self.open.borrow_mut();
        match operation.call {
            Call::Forget => open.entry(worker).or_default().remove(&id),
            _ => open.entry(worker).or_default().insert(id),
        };
        drop(open);
        let (by, request, mut payload) = (self.shard.index(), requester.request, Vec::new());
        operation.encode(&mut payload);
        let bytes = payload.len();
        let trace = requester.context;
        let message = Message::Operation { by, worker, request, trace, payload };
        if self.shard.try_send(LEAD, message).is_ok() {
            requester.is_forwarded(bytes);
        } else {
            self.open.borrow_mut().remove(&worker);
            let (failure, message) = (Failure::Busy, "the server is stopping");
            let part = Part::Failed { failure, message };
            // A worker that has exited does not wait for it.
            let _ = requester.send(&Completion { id, part });
        }
    }

    fn completed(&self, worker: WorkerId, completion: &Completion<'_>) {
        let is_last = !matches!(completion.part, Part::Head(_) | Part::Body(_));
        if is_last && let Some(open) = self.open.borrow_mut().get_mut(&worker) {
            open.remove(&completion.id);
        }
    }

    fn forget(&self, worker: WorkerId) {
        if self.open.borrow_mut().remove(&worker).is_some() {
            self.shard.send(LEAD, Message::Forget { worker });
        }
        self.others.forget(worker);
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        let has_open = self.open.borrow().get(&worker).is_some_and(|open| !open.is_empty());
        has_open || self.others.has_any(worker)
    }
}

impl Requester {
    /// An operation of so many bytes is on its way to the lead.
    fn is_forwarded(&self, bytes: usize) {
        if let Way::Here(pool) = &self.way
            && let Some(pool) = pool.upgrade()
            && let Some(worker) = pool.members.borrow_mut().find(self.worker)
        {
            worker.operation_forwarded(bytes);
        }
    }
}

impl RemoteWorker {
    /// Sends it a frame.
    pub(super) fn send(
        &self,
        worker: WorkerId,
        kind: FrameKind,
        tag: Tag,
        payload: &[u8],
    ) -> Result<(), Gone> {
        if self.is_gone.get() {
            return Err(Gone);
        }
        self.under_way_bytes.update(|bytes| bytes + payload.len());
        let payload = payload.to_vec();
        self.shard.send(self.holder, Message::Frame { worker, kind, tag, payload });
        Ok(())
    }

    /// Whether it has read enough to be sent more; the current task is woken when it has.
    pub(super) fn poll_room(&self) -> Poll<Result<(), Gone>> {
        if self.is_gone.get() {
            return Poll::Ready(Err(Gone));
        }
        if self.under_way_bytes.get() <= MAX_UNDER_WAY_BYTES {
            return Poll::Ready(Ok(()));
        }
        let (mut waiting, task) = (self.waiting.borrow_mut(), current_task());
        if !waiting.contains(&task) {
            waiting.push(task);
        }
        Poll::Pending
    }

    fn delivered(&self, bytes: usize) {
        self.under_way_bytes.update(|under_way| under_way.saturating_sub(bytes));
        self.waiting.take().into_iter().for_each(wake);
    }
}

impl Pool {
    /// On the lead's thread: begins an operation of a worker of another thread.
    pub(in crate::pool) fn begin_remote(
        &self,
        holder: usize,
        (worker, request, context): (WorkerId, Tag, Option<TraceContext>),
        payload: &[u8],
    ) {
        let remote = self.remote_worker(holder, worker);
        let memory = remote.memory.clone();
        // Before all completions, after which the worker may be lent.
        self.shard.send(holder, Message::Begun { worker, bytes: payload.len() });
        let requester =
            Requester { way: Way::Remote(remote), worker, request, memory, trace: None, context };
        let operations = self.operations.borrow().clone();
        // As in `begin_operations`.
        let Ok(operation) = Operation::decode(payload) else { return };
        if contain(|| operations.begin(requester.clone(), &operation)).is_err() {
            self.log(Level::Error, "an operation of a worker made the gateway panic");
            let (failure, message) = (Failure::Busy, "the operation made the gateway panic");
            let part = Part::Failed { failure, message };
            // A worker that has exited does not wait for it.
            let _ = requester.send(&Completion { id: operation.id, part });
        }
    }

    fn remote_worker(&self, holder: usize, worker: WorkerId) -> Rc<RemoteWorker> {
        let mut remote = self.remote_workers.borrow_mut();
        let new = || {
            Rc::new(RemoteWorker {
                shard: self.shard.clone(),
                holder,
                under_way_bytes: Cell::new(0),
                waiting: RefCell::default(),
                is_gone: Cell::new(false),
                memory: Account::below(&self.memory.borrow(), MEMORY_EIGHTHS),
            })
        };
        remote.entry(worker).or_insert_with(new).clone()
    }

    /// On the lead's thread: the worker has exited, or another thread has it now.
    pub(in crate::pool) fn forget_remote(&self, worker: WorkerId) {
        let remote = self.remote_workers.borrow_mut().remove(&worker);
        if let Some(remote) = remote {
            remote.is_gone.set(true);
            remote.delivered(0);
        }
        let operations = self.operations.borrow().clone();
        operations.forget(worker);
    }

    /// On the lead's thread: a worker has read so much.
    pub(in crate::pool) fn remote_has_read(&self, worker: WorkerId, bytes: usize) {
        if let Some(remote) = self.remote_workers.borrow().get(&worker) {
            remote.delivered(bytes);
        }
    }

    /// On another thread than the lead's: an operation of a worker has been begun.
    pub(in crate::pool) fn operation_begun(&self, worker: WorkerId, bytes: usize) {
        if let Some(worker) = self.members.borrow_mut().find(worker) {
            worker.operation_begun(bytes);
        }
    }

    /// On another thread than the lead's: a frame for one of its workers.
    pub(in crate::pool) fn deliver(
        self: &Rc<Self>,
        worker: WorkerId,
        kind: FrameKind,
        tag: Tag,
        payload: &[u8],
    ) {
        if kind == FrameKind::Completion
            && let Ok(completion) = Completion::decode(payload)
        {
            let operations = self.operations.borrow().clone();
            operations.completed(worker, &completion);
        }
        // If it has exited, the lead learns of it by `forget`.
        if self.send_frame(worker, kind, tag, payload).is_err() {
            return;
        }
        let (pool, bytes) = (self.clone(), payload.len());
        let confirm = move |pool: &Self| {
            pool.shard.send(LEAD, Message::Delivered { worker, bytes });
        };
        let has_sent_all = {
            let mut members = self.members.borrow_mut();
            members.find(worker).is_none_or(|worker| worker.has_sent_all())
        };
        if has_sent_all {
            return confirm(&pool);
        }
        spawn(async move {
            let _ = std::future::poll_fn(|_| pool.poll_room(worker)).await;
            confirm(&pool);
        });
    }
}
