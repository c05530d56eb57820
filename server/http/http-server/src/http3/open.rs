//! [`Open`]: what the task of a connection and that of a request share of a stream of HTTP/3.
//!
//! The part that is not that of QUIC is [`OpenStream`].

use crate::multiplexed::OpenStream;
use outboard_buffer::Held;
use outboard_reactor::now_ms;
use std::cell::{Cell, RefCell};

/// See the module.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: u64,
    pub(super) shared: OpenStream,
    /// Whether reading continues when the data was read.
    pub(super) is_paused: Cell<bool>,
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
}

impl Open {
    /// The stream of a request, of which this much has arrived.
    pub(super) fn new(id: u64, incoming: Vec<u8>, has_ended: bool, held: Held) -> Self {
        Self {
            id,
            shared: OpenStream::new(incoming, has_ended, held),
            is_paused: Cell::new(false),
            outgoing: RefCell::default(),
            is_blocked: Cell::new(false),
            is_ending: Cell::new(false),
            is_sent: Cell::new(false),
            is_released: Cell::new(false),
            written_ms: Cell::new(now_ms()),
        }
    }
}
