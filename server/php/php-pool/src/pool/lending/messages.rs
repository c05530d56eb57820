//! [`Message`]: what the pools of an app tell each other across the threads of the server.
//!
//! Sent by all that concerns several threads, to the [`Shard`](super::shards::Shard) of the other pool. Invariants:
//! the messages of one thread to another are handled in their order, each outside of any other work of
//! the pool; a pool at its end handles all that were sent to it, so that nobody waits for an answer and no
//! worker is lost (by its type: a message owns the worker, and [`threads`](super::super::threads) checks the rest).

use crate::worker_id::WorkerId;
use outboard_ring::doorbell::Doorbell;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::zygote::SiblingEnds;
use outboard_trace::TraceContext;

/// A worker on its way to another thread: the gateway's end of it.
#[derive(Debug)]
pub(in crate::pool) struct WorkerTransfer {
    pub(in crate::pool) process: WorkerProcess,
    pub(in crate::pool) doorbell: Doorbell,
}

/// See the module.
#[derive(Debug)]
pub(in crate::pool) enum Message {
    /// To the first pool: have its zygote fork one for this shard.
    Split { shard: usize, ends: SiblingEnds },
    /// To the first pool: kill the zygote of this shard.
    KillZygote { shard: usize },
    /// Requests wait on this shard: give it an idle worker.
    Borrow { by: usize },
    /// There was none.
    NoneIdle,
    /// Requests wait on a shard that may not fork more workers: fork so many.
    Grow { count: usize },
    /// A worker, lent or given back.
    Worker(Box<WorkerTransfer>),
    /// A lent worker has exited; or it is not here any more.
    Exited { number: u64, code: Option<i32>, how: String },
    /// To the owner of a borrowed worker: another thread has it now.
    Moved { number: u64, borrower: usize },
    /// To the owner of a borrowed worker: its borrower knows of its end.
    Reaped { number: u64 },
    /// Send a signal to a worker that is lent.
    Signal { number: u64, signal: i32 },
    /// To the first pool: an operation that it carries out for all.
    Operation {
        by: usize,
        worker: WorkerId,
        request: Tag,
        trace: Option<TraceContext>,
        payload: Vec<u8>,
    },
    /// To the pool that sent it: it has been begun.
    Begun { worker: WorkerId, bytes: usize },
    /// To the first pool: forget the operations of a worker.
    Forget { worker: WorkerId },
    /// A frame for a worker whose operation the first pool carries out.
    Frame { worker: WorkerId, kind: FrameKind, tag: Tag, payload: Vec<u8> },
    /// To the first pool: such a frame is in the worker's ring.
    Delivered { worker: WorkerId, bytes: usize },
    /// To the first pool: the pool of another thread sleeps.
    Asleep,
    /// To the first pool: the pool of another thread has no process any more.
    Closed,
    /// To itself: the pool is gone.
    Gone,
}

impl Message {
    /// What it carries.
    pub(in crate::pool) fn bytes(&self) -> usize {
        match self {
            Self::Operation { payload, .. } | Self::Frame { payload, .. } => payload.len(),
            _ => 0,
        }
    }
}
