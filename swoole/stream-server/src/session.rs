//! [`Session`]: a connection as workers see it, under a number that is never used again.
//!
//! Shared by its task and the calls of workers. Invariant: it stays in the table of its server until its
//! connection has ended and each of its items was acknowledged.

use crate::measure::Measure;
use crate::output::Output;
use crate::settings::PortSettings;
use outboard_reactor::Event;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

/// Items of one connection that may wait or be handled, before it is read on.
const UNACKNOWLEDGED_MAX: usize = 128;

/// How a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Not yet.
    Open,
    /// After its output.
    Flush,
    /// At once.
    Reset,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u64,
    /// The index of the program's port.
    pub(crate) port: u16,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) local_port: u16,
    pub(crate) settings: RefCell<Rc<PortSettings>>,
    pub(crate) connected_s: u64,
    pub(crate) last_receive_s: Cell<u64>,
    pub(crate) last_receive_ms: Cell<u64>,
    pub(crate) last_send_s: Cell<u64>,
    /// The number of the worker that it is bound to.
    pub(crate) seat: Cell<Option<u32>>,
    pub(crate) user: Cell<u64>,
    pub(crate) is_protected: Cell<bool>,
    pub(crate) is_paused: Cell<bool>,
    pub(crate) is_tls: bool,
    pub(crate) output: RefCell<Output>,
    /// Processes that wait for the client to read.
    pub(crate) waiting: RefCell<Vec<(u64, u64)>>,
    pub(crate) closing: Cell<Closing>,
    /// Whether the client may still send, as far as is known.
    pub(crate) is_connected: Cell<bool>,
    pub(crate) unacknowledged: Cell<usize>,
    pub(crate) unacknowledged_bytes: Cell<usize>,
    /// The length of its next message, if the program computes it.
    pub(crate) measure: Measure,
    /// Whether reading waits for acknowledgements.
    pub(crate) is_blocked: Cell<bool>,
    /// Wakes its task.
    pub(crate) changed: Event,
}

impl Session {
    /// Whether it may take another message.
    pub(crate) fn has_room(&self) -> bool {
        let most = self.settings.borrow().package_bytes.max(64 << 10);
        self.unacknowledged.get() < UNACKNOWLEDGED_MAX && self.unacknowledged_bytes.get() < most
    }

    /// Counts an item that a worker is to handle.
    pub(crate) fn add(&self, bytes: usize) {
        self.unacknowledged.update(|count| count + 1);
        self.unacknowledged_bytes.update(|held| held + bytes);
    }

    /// An item was acknowledged.
    pub(crate) fn acknowledge(&self, bytes: usize) {
        self.unacknowledged.update(|count| count - 1);
        self.unacknowledged_bytes.update(|held| held - bytes);
        if self.is_blocked.get() || !self.is_connected.get() {
            self.changed.set();
        }
    }

    /// Closes it; a reset cannot be taken back.
    pub(crate) fn close(&self, closing: Closing) {
        if self.closing.get() != Closing::Reset {
            self.closing.set(closing);
        }
        self.changed.set();
    }

    /// Whether workers may send to it.
    pub(crate) fn is_open(&self) -> bool {
        self.closing.get() == Closing::Open
    }

    /// Whether its worker is to wait before it sends more.
    pub(crate) fn is_full(&self) -> bool {
        self.output.borrow().pending().len() >= self.settings.borrow().high_bytes
    }

    /// Whether its memory is free: the connection has ended, and nothing is to be acknowledged.
    pub(crate) fn is_over(&self) -> bool {
        !self.is_connected.get() && self.unacknowledged.get() == 0
    }
}
