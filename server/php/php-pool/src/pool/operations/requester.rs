//! [`Requester`]: the worker that has requested an operation, and [`Operations`]: what carries operations out.
//!
//! Made by the [queue of operations](super::OperationQueue), held by what carries an operation out until that has
//! ended. Invariant: completions reach the worker that has requested the operation, on whichever thread it is.

use super::gone::Gone;
use super::link::WorkerLink;
use super::remote::RemoteWorker;
use crate::worker_id::WorkerId;
use outboard_buffer::Account;
use outboard_ring::channel::Capacities;
use outboard_ring::frame::{FRAME_HEADER_BYTES, FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Failure, FetchedHead, Operation, Part};
use outboard_trace::{Scope, TraceContext};
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::Poll;

/// The longest body of one completion; longer ones are split.
pub const PIECE_BYTES: usize = 32 * 1024;
/// The longest head of one completion, with a body or without.
const HEAD_MAX_BYTES: usize = 32 * 1024;
const _: () = assert!(
    PIECE_BYTES + HEAD_MAX_BYTES + FRAME_HEADER_BYTES <= Capacities::DEFAULT.request_bytes as usize,
    "a completion that does not fit into the ring never arrives"
);

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

/// The way to a worker.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// It is in a pool of this thread.
    Here(Weak<WorkerLink>),
    /// Another thread has it.
    Remote(Rc<RemoteWorker>),
}

/// The worker that has requested an operation, to which its completions are sent.
#[derive(Debug, Clone)]
pub struct Requester {
    pub(super) way: Way,
    pub(super) worker: WorkerId,
    /// The request that the operation belongs to; the default for none.
    pub(super) request: Tag,
    /// The account of the worker's operations.
    pub(super) memory: Rc<Account>,
    /// The span of the request, if it is traced.
    pub(super) trace: Option<Scope>,
    /// What follows from the request is part of this trace; set on the lead's thread as well.
    pub(super) context: Option<TraceContext>,
    /// Whether a debugger may be attached to it.
    pub(super) is_debugged: bool,
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

    /// An operation of so many bytes is on its way to the lead.
    pub(super) fn is_forwarded(&self, bytes: usize) {
        if let Way::Here(link) = &self.way
            && let Some(link) = link.upgrade()
        {
            link.operation_forwarded(self.worker, bytes);
        }
    }

    /// Whether what it requests is debugged as well.
    pub(crate) fn is_debugged(&self) -> bool {
        self.is_debugged
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
        match &self.way {
            Way::Here(link) => {
                let link = link.upgrade().ok_or(Gone)?;
                link.send_completion(self.worker, self.request, |payload| {
                    encode(completion, payload);
                })
            }
            Way::Remote(remote) => {
                let mut payload = Vec::new();
                encode(completion, &mut payload);
                remote.send(self.worker, FrameKind::Completion, self.request, &payload)
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
            Way::Here(link) => link.upgrade().ok_or(Gone)?.send(self.worker, kind, tag, payload),
            Way::Remote(remote) => remote.send(self.worker, kind, tag, payload),
        }
    }

    /// Whether everything that was sent to the worker is in its ring; the current task is woken when it
    /// is.
    pub fn poll_room(&self) -> Poll<Result<(), Gone>> {
        match &self.way {
            Way::Here(link) => {
                link.upgrade().map_or(Poll::Ready(Err(Gone)), |link| link.poll_room(self.worker))
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
