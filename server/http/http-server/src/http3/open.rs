//! [`Open`]: what the task of a connection and that of a request share of a stream.
//!
//! Invariant: after it is closed, its task is woken and finds it closed.

use outboard_buffer::Held;
use outboard_reactor::{Event, now_ms};
use std::cell::{Cell, RefCell};

/// See the module.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: u64,
    /// Received data that the request's task has not read.
    pub(super) incoming: RefCell<Vec<u8>>,
    /// Whether reading continues when the data was read.
    pub(super) is_paused: Cell<bool>,
    /// The request is complete.
    pub(super) has_ended: Cell<bool>,
    /// The stream was reset, or the connection is gone.
    pub(super) is_closed: Cell<bool>,
    /// Frames that are not accepted yet.
    pub(super) outgoing: RefCell<Vec<u8>>,
    /// The last write was not accepted completely.
    pub(super) is_blocked: Cell<bool>,
    /// The response ends after `outgoing`.
    pub(super) is_ending: Cell<bool>,
    /// The response has arrived, or will not.
    pub(super) is_sent: Cell<bool>,
    /// The task has ended.
    pub(super) is_released: Cell<bool>,
    /// When something was accepted last.
    pub(super) written_ms: Cell<u64>,
    pub(super) readable: Event,
    pub(super) writable: Event,
    _held: Held,
}

impl Open {
    /// The stream of a request, of which this much has arrived.
    pub(super) fn new(id: u64, incoming: Vec<u8>, has_ended: bool, held: Held) -> Self {
        Self {
            id,
            incoming: RefCell::new(incoming),
            is_paused: Cell::new(false),
            has_ended: Cell::new(has_ended),
            is_closed: Cell::new(false),
            outgoing: RefCell::default(),
            is_blocked: Cell::new(false),
            is_ending: Cell::new(false),
            is_sent: Cell::new(false),
            is_released: Cell::new(false),
            written_ms: Cell::new(now_ms()),
            readable: Event::default(),
            writable: Event::default(),
            _held: held,
        }
    }

    /// Nothing is read or written any more.
    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.readable.set();
        self.writable.set();
    }
}
