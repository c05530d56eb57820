//! [`Sending`]: what a connection's streams have handed over and the socket has not taken yet.
//!
//! Without it, a client that opens its windows and then takes nothing would have each of its streams
//! fill a buffer. Invariant: a stream hands nothing more over while [`MOST_BYTES`] wait.

use outboard_reactor::{TaskId, current_task, now_ms, wake};
use outboard_tls::Writes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

/// Between the streams of a connection and its socket.
const MOST_BYTES: u64 = 256 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Sending {
    /// What was handed over and may be waiting. Of what streams that were reset have handed over nobody says
    /// that it waits no more, so this is too much until nothing waits.
    waiting_bytes: Cell<u64>,
    writes: Rc<Writes>,
    /// How much was written when that was last looked at, and when it had become more.
    seen_bytes: Cell<u64>,
    moved_ms: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
}

impl Sending {
    pub(super) fn new(writes: Rc<Writes>) -> Self {
        Self {
            waiting_bytes: Cell::new(0),
            writes,
            seen_bytes: Cell::new(0),
            moved_ms: Cell::new(now_ms()),
            waiting: RefCell::default(),
        }
    }

    /// A stream hands so much over.
    pub(super) fn hand(&self, bytes: usize) {
        self.waiting_bytes.set(self.waiting_bytes.get() + bytes as u64);
    }

    /// Whether a stream may hand more over; the current task is woken when it may.
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

    /// When the socket has last taken something.
    pub(super) fn moved_ms(&self) -> u64 {
        self.moved_ms.get()
    }

    /// Looks what was written, after the connection had its turn.
    pub(super) fn look(&self) {
        let written_bytes = self.writes.bytes.get();
        let new_bytes = written_bytes - self.seen_bytes.replace(written_bytes);
        if new_bytes > 0 {
            self.moved_ms.set(now_ms());
        }
        let left_bytes = match self.writes.are_blocked.get() {
            true => self.waiting_bytes.get().saturating_sub(new_bytes),
            false => 0,
        };
        self.waiting_bytes.set(left_bytes);
        if self.has_room() {
            self.waiting.take().into_iter().for_each(wake);
        }
    }

    fn has_room(&self) -> bool {
        self.waiting_bytes.get() < MOST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_wait_while_the_socket_takes_nothing() {
        outboard_reactor::run(async {
            let writes = Rc::<Writes>::default();
            let sending = Sending::new(writes.clone());
            sending.hand(MOST_BYTES as usize - 1);
            assert!(sending.poll_room().is_ready());
            sending.hand(1);
            writes.are_blocked.set(true);
            sending.look();
            assert!(sending.poll_room().is_pending());
            writes.bytes.set(1);
            sending.look();
            assert!(sending.poll_room().is_ready());
        })
        .unwrap();
    }

    #[test]
    fn what_a_reset_stream_has_handed_over_takes_no_room_once_all_is_written() {
        outboard_reactor::run(async {
            let sending = Sending::new(Rc::default());
            sending.hand(10 * MOST_BYTES as usize);
            assert!(sending.poll_room().is_pending());
            sending.look();
            assert!(sending.poll_room().is_ready());
        })
        .unwrap();
    }
}
