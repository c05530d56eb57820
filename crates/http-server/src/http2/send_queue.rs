//! [`SendQueue`]: a limit on the bytes of all streams that the socket has not accepted yet.
//!
//! Without it, a client that opens its windows and reads nothing would make each stream fill a buffer.
//! Invariant: no stream adds data while [`MAX_BYTES`] are queued.

use outboard_reactor::{TaskId, current_task, now_ms, wake};
use outboard_tls::Writes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

/// The limit for a connection.
const MAX_BYTES: u64 = 256 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct SendQueue {
    /// An upper bound: data of streams that were reset counts until the queue is empty.
    queued_bytes: Cell<u64>,
    writes: Rc<Writes>,
    /// The bytes written at the last update.
    written_bytes: Cell<u64>,
    /// When the socket last accepted something.
    progress_ms: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
}

impl SendQueue {
    pub(super) fn new(writes: Rc<Writes>) -> Self {
        Self {
            queued_bytes: Cell::new(0),
            writes,
            written_bytes: Cell::new(0),
            progress_ms: Cell::new(now_ms()),
            waiting: RefCell::default(),
        }
    }

    /// A stream adds data.
    pub(super) fn add(&self, bytes: usize) {
        self.queued_bytes.set(self.queued_bytes.get() + bytes as u64);
    }

    /// Whether a stream may add data; otherwise the current task is woken when it may.
    pub(super) fn poll_room(&self) -> Poll<()> {
        if self.has_room() {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        let task = current_task();
        if !waiting.contains(&task) {
            waiting.push(task);
        }
        Poll::Pending
    }

    /// When the socket last accepted something.
    pub(super) fn progress_ms(&self) -> u64 {
        self.progress_ms.get()
    }

    /// Updates the queue after the connection was polled.
    pub(super) fn update(&self) {
        let written_bytes = self.writes.bytes.get();
        let new_bytes = written_bytes - self.written_bytes.replace(written_bytes);
        if new_bytes > 0 {
            self.progress_ms.set(now_ms());
        }
        let left_bytes = match self.writes.are_blocked.get() {
            true => self.queued_bytes.get().saturating_sub(new_bytes),
            false => 0,
        };
        self.queued_bytes.set(left_bytes);
        if self.has_room() {
            self.waiting.take().into_iter().for_each(wake);
        }
    }

    fn has_room(&self) -> bool {
        self.queued_bytes.get() < MAX_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_wait_while_the_socket_accepts_nothing() {
        outboard_reactor::run(async {
            let writes = Rc::<Writes>::default();
            let queue = SendQueue::new(writes.clone());
            queue.add(MAX_BYTES as usize - 1);
            assert!(queue.poll_room().is_ready());
            queue.add(1);
            writes.are_blocked.set(true);
            queue.update();
            assert!(queue.poll_room().is_pending());
            writes.bytes.set(1);
            queue.update();
            assert!(queue.poll_room().is_ready());
        })
        .unwrap();
    }

    #[test]
    fn data_of_a_reset_stream_counts_until_the_queue_is_empty() {
        outboard_reactor::run(async {
            let queue = SendQueue::new(Rc::default());
            queue.add(10 * MAX_BYTES as usize);
            assert!(queue.poll_room().is_pending());
            queue.update();
            assert!(queue.poll_room().is_ready());
        })
        .unwrap();
    }
}
