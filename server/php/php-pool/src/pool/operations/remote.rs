//! [`RemoteWorker`]: on the lead's thread, a worker of another thread whose operations are carried out here.
//!
//! Invariant: of an operation that waits for room, no more bytes are on their way to a worker than
//! [`MAX_UNDER_WAY_BYTES`] and one completion.

use super::gone::Gone;
use super::requester::PIECE_BYTES;
use crate::pool::lending::messages::Message;
use crate::pool::lending::shards::Shard;
use crate::worker_id::WorkerId;
use outboard_buffer::Account;
use outboard_reactor::{TaskId, current_task, wake};
use outboard_ring::frame::{FrameKind, Tag};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

/// Completions that a worker of another thread has not read yet.
const MAX_UNDER_WAY_BYTES: usize = 128 << 10;
const _: () =
    assert!(MAX_UNDER_WAY_BYTES >= 2 * PIECE_BYTES, "it reads a piece while the next one comes");
/// The share of the pool's memory for operations that those of one worker may hold, in eighths.
const MEMORY_EIGHTHS: usize = 2;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct RemoteWorker {
    shard: Shard,
    /// The shard that has it.
    thread: usize,
    under_way_bytes: Cell<usize>,
    waiting: RefCell<Vec<TaskId>>,
    is_gone: Cell<bool>,
    memory: Rc<Account>,
}

impl RemoteWorker {
    /// A worker that another thread has.
    pub(super) fn new(shard: &Shard, thread: usize, memory: &Rc<Account>) -> Rc<Self> {
        Rc::new(Self {
            shard: shard.clone(),
            thread,
            under_way_bytes: Cell::new(0),
            waiting: RefCell::default(),
            is_gone: Cell::new(false),
            memory: Account::below(memory, MEMORY_EIGHTHS),
        })
    }

    /// The account of its operations.
    pub(super) fn memory(&self) -> &Rc<Account> {
        &self.memory
    }

    /// It has exited, or another thread has it now.
    pub(super) fn end(&self) {
        self.is_gone.set(true);
        self.delivered(0);
    }

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
        self.shard.send(self.thread, Message::Frame { worker, kind, tag, payload });
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

    /// It has read so much.
    pub(super) fn delivered(&self, bytes: usize) {
        self.under_way_bytes.update(|under_way| under_way.saturating_sub(bytes));
        self.waiting.take().into_iter().for_each(wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::lending::shards::PoolShards;

    #[test]
    fn a_worker_that_does_not_read_gets_no_more() {
        outboard_reactor::run(async {
            let shards = PoolShards::new(2);
            let remote = RemoteWorker::new(&shards.place(0), 1, &Account::detached());
            let id = WorkerId { pool: 1, slot: 0, number: 2 };
            let send = |bytes| {
                let payload = vec![0; bytes];
                remote.send(id, FrameKind::Completion, Tag::default(), &payload)
            };
            assert_eq!(send(MAX_UNDER_WAY_BYTES), Ok(()));
            assert_eq!(remote.poll_room(), Poll::Ready(Ok(())));
            assert_eq!(send(1), Ok(()));
            assert_eq!(remote.poll_room(), Poll::Pending);
            remote.delivered(1);
            assert_eq!(remote.poll_room(), Poll::Ready(Ok(())));
            remote.end();
            assert_eq!((remote.poll_room(), send(1)), (Poll::Ready(Err(Gone)), Err(Gone)));
        })
        .unwrap();
    }
}
