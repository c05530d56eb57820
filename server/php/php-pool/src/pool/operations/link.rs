//! [`WorkerLink`]: the way back to the workers of a pool, for completions and events.
//!
//! Held by the [`Requester`](super::Requester)s of its workers' operations. Invariants: a frame reaches the worker
//! that it is for and never a successor in its slot; frames that do not fit into the ring wait in order.

use super::gone::Gone;
use crate::pool::core::PoolCore;
use crate::worker_id::WorkerId;
use outboard_reactor::current_task;
use outboard_ring::frame::{FrameKind, Tag};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct WorkerLink {
    core: Rc<PoolCore>,
    /// Reused for each completion.
    completion_buffer: RefCell<Vec<u8>>,
}

impl WorkerLink {
    pub(in crate::pool) fn new(core: Rc<PoolCore>) -> Rc<Self> {
        Rc::new(Self { core, completion_buffer: RefCell::default() })
    }

    pub(super) fn core(&self) -> &Rc<PoolCore> {
        &self.core
    }

    /// Sends a completion that a function encodes.
    pub(super) fn send_completion(
        &self,
        worker: WorkerId,
        tag: Tag,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Gone> {
        let mut payload = self.completion_buffer.take();
        encode(&mut payload);
        let sent = self.send(worker, FrameKind::Completion, tag, &payload);
        self.completion_buffer.replace(payload);
        sent
    }

    /// Sends a frame; one that does not fit into the ring is queued.
    pub(super) fn send(
        &self,
        id: WorkerId,
        kind: FrameKind,
        tag: Tag,
        payload: &[u8],
    ) -> Result<(), Gone> {
        debug_assert_eq!(id.pool, self.core.id, "the worker is another pool's");
        let mut members = self.core.members.borrow_mut();
        let worker = members.roster.find(id).ok_or(Gone)?;
        if let Err(corrupt) = worker.send(kind, tag, payload) {
            self.core.kill_for_protocol_error(&mut members, id.slot, corrupt);
            return Err(Gone);
        }
        Ok(())
    }

    /// Whether everything that was sent to the worker is in its ring; the current task is woken when it is.
    pub(super) fn poll_room(&self, id: WorkerId) -> Poll<Result<(), Gone>> {
        let mut members = self.core.members.borrow_mut();
        match members.roster.find(id) {
            None => Poll::Ready(Err(Gone)),
            Some(worker) if worker.has_sent_all() => Poll::Ready(Ok(())),
            Some(worker) => {
                worker.wait_for_room(current_task());
                Poll::Pending
            }
        }
    }

    /// Whether everything that was sent to the worker is in its ring, or it is gone.
    pub(super) fn has_sent_all(&self, id: WorkerId) -> bool {
        let mut members = self.core.members.borrow_mut();
        members.roster.find(id).is_none_or(|worker| worker.has_sent_all())
    }

    /// An operation of so many bytes of a worker is on its way to the lead.
    pub(super) fn operation_forwarded(&self, id: WorkerId, bytes: usize) {
        if let Some(worker) = self.core.members.borrow_mut().roster.find(id) {
            worker.operation_forwarded(bytes);
        }
    }

    /// The lead has begun an operation of a worker.
    pub(super) fn operation_begun(&self, id: WorkerId, bytes: usize) {
        if let Some(worker) = self.core.members.borrow_mut().roster.find(id) {
            worker.operation_begun(bytes);
        }
    }
}
