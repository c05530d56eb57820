//! Operations: requests of workers to the gateway, and the way back for their completions.
//!
//! The pool receives `Operation` frames and passes them to its [`Operations`] after it has polled the
//! rings, so that these may call the pool. Invariants: completions reach the worker that requested the
//! operation and never a successor in its slot; completions that do not fit into the ring wait in
//! order; when a worker has exited, its operations are forgotten.

mod forwarded;

use super::Pool;
use super::worker::{PANICKED, Worker};
use crate::budget::Budget;
use crate::script_span;
use crate::worker_id::WorkerId;
use outboard_buffer::Account;
use outboard_reactor::{contain, current_task};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Failure, FetchedHead, Operation, Part};
use outboard_trace::{Scope, TraceContext};
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::Poll;

pub use forwarded::ForwardedOperations;
pub(super) use forwarded::RemoteWorker;

/// The longest body of one completion; longer ones are split.
pub const PIECE_BYTES: usize = 32 * 1024;
/// The longest head of one completion, with a body or without.
const HEAD_MAX_BYTES: usize = 32 * 1024;

/// Carries out the operations of workers.
pub trait Operations: fmt::Debug {
    /// Begins an operation, whose id may be in use.
    fn begin(&self, requester: Requester, operation: &Operation<'_>);

    /// Forgets the operations of a worker that has exited.
    fn forget(&self, worker: WorkerId);

    /// A completion from the lead's thread is about to be sent to a worker.
    fn completed(&self, _worker: WorkerId, _completion: &Completion<'_>) {}

    /// Whether a worker has operations that are not finished.
    fn has_any(&self, worker: WorkerId) -> bool;
}

/// The worker has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// The way to a worker.
#[derive(Debug, Clone)]
enum Way {
    /// It is in a pool of this thread.
    Here(Weak<Pool>),
    /// Another thread has it.
    Remote(Rc<RemoteWorker>),
}

/// The worker that has requested an operation, to which its completions are sent.
#[derive(Debug, Clone)]
pub struct Requester {
    way: Way,
    pub(super) worker: WorkerId,
    /// The request that the operation belongs to; the default for none.
    pub(super) request: Tag,
    /// The account of the worker's operations.
    pub(super) memory: Rc<Account>,
    /// The span of the request, if it is traced.
    pub(super) trace: Option<Scope>,
    /// What follows from the request is part of this trace; set on the lead's thread as well.
    pub(super) context: Option<TraceContext>,
}

impl Requester {
    /// The worker.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// The account of the worker's operations.
    pub fn memory(&self) -> &Rc<Account> {
        &self.memory
    }

    /// The span of PHP that the operation is part of.
    pub fn trace(&self) -> Option<&Scope> {
        self.trace.as_ref()
    }

    /// The trace of what follows from the request.
    pub fn context(&self) -> Option<TraceContext> {
        self.context
    }

    /// Sends a completion without waiting: what does not fit into the ring is queued. Callers that send
    /// much wait for [`Requester::room`] before each.
    ///
    /// # Errors
    /// [`Gone`]: stop the operation.
    pub fn send(&self, completion: &Completion<'_>) -> Result<(), Gone> {
        match completion.part {
            Part::Body(body) if body.len() > PIECE_BYTES => {
                body.chunks(PIECE_BYTES).try_for_each(|piece| {
                    self.push(&Completion { id: completion.id, part: Part::Body(piece) })
                })
            }
            _ => self.push(completion),
        }
    }

    fn push(&self, completion: &Completion<'_>) -> Result<(), Gone> {
        let kind = FrameKind::Completion;
        match &self.way {
            Way::Here(pool) => {
                let pool = pool.upgrade().ok_or(Gone)?;
                let mut payload = pool.completion_buffer.take();
                encode(completion, &mut payload);
                let sent = pool.send_frame(self.worker, kind, self.request, &payload);
                pool.completion_buffer.replace(payload);
                sent
            }
            Way::Remote(remote) => {
                let mut payload = Vec::new();
                encode(completion, &mut payload);
                remote.send(self.worker, kind, self.request, &payload)
            }
        }
    }

    /// Sends an event of a raw connection. As with completions, what does not fit is queued.
    ///
    /// # Errors
    /// [`Gone`]: the worker gets no others.
    pub fn send_event(&self, payload: &[u8]) -> Result<(), Gone> {
        let (kind, tag) = (FrameKind::Stream, Tag::default());
        match &self.way {
            Way::Here(pool) => {
                pool.upgrade().ok_or(Gone)?.send_frame(self.worker, kind, tag, payload)
            }
            Way::Remote(remote) => remote.send(self.worker, kind, tag, payload),
        }
    }

    /// Whether everything that was sent to the worker is in its ring; the current task is woken when it
    /// is.
    pub fn poll_room(&self) -> Poll<Result<(), Gone>> {
        match &self.way {
            Way::Here(pool) => {
                pool.upgrade().map_or(Poll::Ready(Err(Gone)), |pool| pool.poll_room(self.worker))
            }
            Way::Remote(remote) => remote.poll_room(),
        }
    }

    /// Sends a complete response, in pieces as the worker reads them.
    ///
    /// # Errors
    /// [`Gone`]: stop the operation.
    pub async fn send_whole<'a>(
        &self,
        id: Tag,
        head: FetchedHead<'_>,
        parts: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<(), Gone> {
        self.room().await?;
        if parts.clone().map(<[u8]>::len).sum::<usize>() <= PIECE_BYTES {
            let body: Vec<u8> = parts.flatten().copied().collect();
            return self.send(&Completion { id, part: Part::Whole(head, &body) });
        }
        self.send(&Completion { id, part: Part::Head(head) })?;
        for piece in parts.flat_map(|part| part.chunks(PIECE_BYTES)) {
            self.room().await?;
            self.send(&Completion { id, part: Part::Body(piece) })?;
        }
        self.room().await?;
        self.send(&Completion { id, part: Part::End })
    }

    /// Waits until everything that was sent to the worker is in its ring.
    ///
    /// # Errors
    /// [`Gone`]: stop the operation.
    pub async fn room(&self) -> Result<(), Gone> {
        std::future::poll_fn(|_| self.poll_room()).await
    }
}

/// Writes a completion; in place of one that is too long, a failure.
fn encode(completion: &Completion<'_>, payload: &mut Vec<u8>) {
    payload.clear();
    completion.encode(payload);
    if payload.len() > PIECE_BYTES + HEAD_MAX_BYTES {
        let (failure, message) = (Failure::TooLarge, "the head of the response is too long");
        payload.clear();
        Completion { id: completion.id, part: Part::Failed { failure, message } }.encode(payload);
    }
}

/// Refuses all operations; the default of a pool.
#[derive(Debug)]
pub(crate) struct NoOperations;

impl Operations for NoOperations {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        let (Call::Fetch(_) | Call::Entities(_) | Call::Rate(_)) = operation.call else { return };
        let id = operation.id;
        let message = "operations are not available to this app";
        let part = Part::Failed { failure: Failure::Busy, message };
        // A worker that has exited does not wait for it.
        let _ = requester.send(&Completion { id, part });
    }

    fn forget(&self, _: WorkerId) {}

    fn has_any(&self, _: WorkerId) -> bool {
        false
    }
}

impl Pool {
    /// Sets the implementation of operations; until then all are refused.
    pub fn set_operations(&self, operations: Rc<dyn Operations>) {
        self.operations.replace(operations);
    }

    /// Sets the account of its workers' operations. It applies to workers that are forked later.
    pub fn set_memory(&self, account: Rc<Account>) {
        self.memory.replace(account);
    }

    /// Whether operations wait to be begun; meanwhile the rings are not polled.
    pub(super) fn has_pending_operations(&self) -> bool {
        !self.pending_operations.borrow().is_empty()
    }

    /// Whether a worker has operations that are not finished, or not begun.
    pub(super) fn has_operations(&self, worker: WorkerId) -> bool {
        let pending = self.pending_operations.borrow();
        pending.iter().any(|(requester, _)| requester.worker == worker)
            || self.operations.borrow().has_any(worker)
    }

    /// Begins pending operations within the budget, while the workers are not borrowed. A worker whose
    /// operation makes the gateway panic is the only one that is affected.
    pub(super) fn begin_operations(&self, budget: &mut Budget) {
        let operations = self.operations.borrow().clone();
        while !budget.is_spent() {
            let Some((requester, payload)) = self.pending_operations.borrow_mut().pop_front()
            else {
                break;
            };
            let id = requester.worker;
            // A malformed one has no id to respond to; the worker's deadline ends its wait.
            let Ok(operation) = Operation::decode(&payload) else { continue };
            if contain(|| operations.begin(requester, &operation)).is_err()
                && let Some(worker) = self.members.borrow_mut().find(id)
            {
                self.kill_for_protocol_error(worker, PANICKED);
            }
            budget.check_clock();
        }
        if self.has_pending_operations() {
            return;
        }
        for worker in self.departed_workers.take() {
            operations.forget(worker);
        }
    }

    /// Queues an operation until the workers are not borrowed any more. A span is added to its trace at
    /// once: later the request may have ended.
    pub(super) fn queue_operation(&self, worker: &Worker, request: Tag, payload: &[u8]) {
        let trace = worker.trace_of(request);
        let trace = match Operation::decode(payload) {
            Ok(Operation { call: Call::Span(call), .. }) => {
                return script_span::add(trace.as_ref(), &call);
            }
            Ok(Operation { span, .. }) if span != 0 => trace.map(|php| php.part(span)),
            _ => trace,
        };
        let (way, memory) = (Way::Here(self.weak_self.clone()), worker.memory().clone());
        let context = trace.as_ref().map(Scope::context);
        let requester = Requester { way, worker: worker.id, request, memory, trace, context };
        self.pending_operations.borrow_mut().push_back((requester, payload.to_vec()));
        self.active.list_pool();
    }

    /// A worker has exited or is lent: its operations are forgotten after those before.
    pub(super) fn forget_operations(&self, worker: WorkerId) {
        self.departed_workers.borrow_mut().push(worker);
        self.active.list_pool();
    }

    fn send_frame(
        &self,
        id: WorkerId,
        kind: FrameKind,
        tag: Tag,
        payload: &[u8],
    ) -> Result<(), Gone> {
        let mut members = self.members.borrow_mut();
        let worker = members.find(id).ok_or(Gone)?;
        if let Err(corrupt) = worker.send(kind, tag, payload) {
            self.kill_for_protocol_error(worker, corrupt);
            return Err(Gone);
        }
        Ok(())
    }

    fn poll_room(&self, id: WorkerId) -> Poll<Result<(), Gone>> {
        let mut members = self.members.borrow_mut();
        match members.find(id) {
            None => Poll::Ready(Err(Gone)),
            Some(worker) if worker.has_sent_all() => Poll::Ready(Ok(())),
            Some(worker) => {
                worker.wait_for_room(current_task());
                Poll::Pending
            }
        }
    }
}
