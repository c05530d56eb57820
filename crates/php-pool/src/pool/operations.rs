//! What workers ask the gateway to do beside answering requests, and the way back for what came
//! of it.
//!
//! The pool hears `Operation` frames and hands them to its [`Operations`] after each
//! look into the rings, so that these may call the pool again. Invariants: completions reach the
//! worker that asked and never a successor in its place; what does not fit into its ring waits in
//! order; when it has gone, its operations are forgotten.

use super::Pool;
use super::budget::Budget;
use super::dispatch::PANICKED;
use super::worker::Worker;
use crate::worker_id::WorkerId;
use outboard_buffer::Account;
use outboard_reactor::{contain, current_task};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Failure, FetchedHead, Operation, Part};
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::Poll;

/// Longest body of one completion; longer ones are cut into several.
pub const PIECE_BYTES: usize = 32 * 1024;
/// Longest head of one completion, beside a body or without.
const HEAD_MAX_BYTES: usize = 32 * 1024;

/// Carries out what workers ask for.
pub trait Operations: fmt::Debug {
    /// A worker asks: `payload` is an [`Operation`]. It may be broken, and its id in use.
    fn begin(&self, requester: Requester, payload: &[u8]);

    /// A worker has gone: nobody waits for its operations.
    fn forget(&self, worker: WorkerId);
}

/// The worker has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// Who asked for an operation, and where its completions go.
#[derive(Debug, Clone)]
pub struct Requester {
    pub(super) pool: Weak<Pool>,
    pub(super) worker: WorkerId,
    /// The request that it belongs to; the default for one that belongs to none.
    pub(super) request: Tag,
    /// What it asks for is counted here.
    pub(super) memory: Rc<Account>,
}

impl Requester {
    /// The worker.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Where what is held for the worker is counted.
    pub fn memory(&self) -> &Rc<Account> {
        &self.memory
    }

    /// Sends a completion. Never waits: what does not fit into the ring is queued. Whoever sends
    /// much waits for [`Requester::room`] between.
    ///
    /// # Errors
    /// [`Gone`]: stop the operation.
    pub fn send(&self, completion: &Completion<'_>) -> Result<(), Gone> {
        let pool = self.pool.upgrade().ok_or(Gone)?;
        match completion.part {
            Part::Body(body) if body.len() > PIECE_BYTES => {
                body.chunks(PIECE_BYTES).try_for_each(|piece| {
                    self.push(&pool, &Completion { id: completion.id, part: Part::Body(piece) })
                })
            }
            _ => self.push(&pool, completion),
        }
    }

    fn push(&self, pool: &Pool, completion: &Completion<'_>) -> Result<(), Gone> {
        let mut payload = pool.completion.take();
        payload.clear();
        completion.encode(&mut payload);
        if payload.len() > PIECE_BYTES + HEAD_MAX_BYTES {
            let (failure, message) = (Failure::TooLarge, "the answer's head is too long");
            let part = Part::Failed { failure, message };
            payload.clear();
            Completion { id: completion.id, part }.encode(&mut payload);
        }
        let sent = pool.complete(self.worker, self.request, &payload);
        pool.completion.replace(payload);
        sent
    }

    /// Sends an answer that is at hand, in pieces as the worker takes them.
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

    /// Waits until all that was sent to the worker is in its ring.
    ///
    /// # Errors
    /// [`Gone`]: stop the operation.
    pub async fn room(&self) -> Result<(), Gone> {
        std::future::poll_fn(|_| match self.pool.upgrade() {
            None => Poll::Ready(Err(Gone)),
            Some(pool) => pool.poll_room(self.worker),
        })
        .await
    }
}

/// Refuses everything: the operations of a pool that was given none.
#[derive(Debug)]
pub(crate) struct NoOperations;

impl Operations for NoOperations {
    fn begin(&self, requester: Requester, payload: &[u8]) {
        let Ok(Operation { id, call: Call::Fetch(_) }) = Operation::decode(payload) else { return };
        let message = "the gateway of this app does not fetch";
        let part = Part::Failed { failure: Failure::Busy, message };
        // A worker that has gone waits for nothing.
        let _ = requester.send(&Completion { id, part });
    }

    fn forget(&self, _: WorkerId) {}
}

impl Pool {
    /// Says who carries out operations; until then nobody does.
    pub fn set_operations(&self, operations: Rc<dyn Operations>) {
        self.operations.replace(operations);
    }

    /// Says where what is held for its workers' operations is counted. Workers that were forked before
    /// are not.
    pub fn set_memory(&self, account: Rc<Account>) {
        self.memory.replace(account);
    }

    /// Whether operations wait to be begun; until then no more are heard.
    pub(super) fn has_asked(&self) -> bool {
        !self.asked.borrow().is_empty()
    }

    /// Hands over what workers have asked for, within the budget. The workers are not borrowed.
    /// One whose operation makes us panic is the only one that it costs.
    pub(super) fn begin_operations(&self, budget: &mut Budget) {
        let operations = self.operations.borrow().clone();
        while !budget.is_spent() {
            let Some((requester, payload)) = self.asked.borrow_mut().pop_front() else { break };
            let id = requester.worker;
            if contain(|| operations.begin(requester, &payload)).is_err()
                && let Some(worker) = self.members.borrow_mut().find(id)
            {
                self.condemn(worker, PANICKED);
            }
            budget.glance();
        }
        if self.has_asked() {
            return;
        }
        for worker in self.left.take() {
            operations.forget(worker);
        }
    }

    /// Remembers an operation until the workers are no longer borrowed.
    pub(super) fn ask(&self, worker: &Worker, request: Tag, payload: &[u8]) {
        let (pool, memory) = (self.me.clone(), worker.memory().clone());
        let requester = Requester { pool, worker: worker.id, request, memory };
        self.asked.borrow_mut().push_back((requester, payload.to_vec()));
    }

    /// A worker has gone.
    pub(super) fn forget_operations(&self, worker: WorkerId) {
        self.left.borrow_mut().push(worker);
    }

    fn complete(&self, id: WorkerId, request: Tag, payload: &[u8]) -> Result<(), Gone> {
        let mut members = self.members.borrow_mut();
        let worker = members.find(id).ok_or(Gone)?;
        if let Err(corrupt) = worker.send(FrameKind::Completion, request, payload) {
            self.condemn(worker, corrupt);
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
