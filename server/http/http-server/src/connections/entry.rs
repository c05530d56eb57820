//! [`Entry`]: an open connection or stream, as its task has it.
//!
//! Opened by [`super::Connections`]. Invariant: what an entry counts as is released when it is dropped.

use super::Connections;
use super::table::State;
use crate::census::Place;
use outboard_buffer::Held;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// An open connection or stream, until this is dropped.
#[derive(Debug)]
pub struct Entry {
    pub(super) connections: Rc<Connections>,
    pub(super) key: usize,
    pub(super) held: Option<Held>,
    /// Among the connections of its listener, if that has limits of its own.
    pub(super) place: Option<Place>,
}

impl Entry {
    /// Its listener counts it no more, because it is to be counted by another address.
    pub(crate) fn leave_listener(&mut self) {
        self.place = None;
    }

    /// Its memory, which is counted until the entry is dropped.
    pub(crate) fn hold(&mut self, held: Held) {
        self.held = Some(held);
    }

    /// The connection waits for a request in the current task, and may be asked to close.
    pub fn set_idle(&self) {
        self.connections.set_idle(self.key);
    }

    /// Whether it is asked to close.
    pub fn must_close(&self) -> bool {
        self.connections.table.borrow().open[self.key].state == State::Closing
    }

    /// A request is processed.
    pub fn set_busy(&self) {
        self.connections.set_busy(self.key);
    }

    /// Runs work in which the client may be idle; `None` if it is asked to close meanwhile.
    pub(crate) async fn while_idle<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let done = poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            self.set_idle();
            if self.must_close() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        if done.is_some() {
            self.set_busy();
        }
        done
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // What waits for room may be short of memory as well.
        self.held.take();
        self.connections.close(self.key);
    }
}
