//! [`Windows`]: how much data of a connection may be under way.
//!
//! Owned by the link. Invariant: a connection has the wider windows only while `limits.memory` has room for
//! them, and requests need them.

use outboard_buffer::{Account, Held};
use outboard_quic::Connection;
use std::cell::RefCell;
use std::rc::Rc;

/// What is stored of responses until the client acknowledges it, and what a client may send before it is read.
pub(super) const SEND_WINDOW_BYTES: u64 = 64 << 10;
pub(super) const RECEIVE_WINDOW_BYTES: u32 = 64 << 10;
/// For a connection with more data than fits the first windows.
const WIDE_SEND_BYTES: u64 = 512 << 10;
const WIDE_RECEIVE_BYTES: u32 = 512 << 10;
/// What they take in addition.
const MORE_BYTES: usize = (WIDE_SEND_BYTES - SEND_WINDOW_BYTES) as usize
    + (WIDE_RECEIVE_BYTES - RECEIVE_WINDOW_BYTES) as usize;

/// See the module.
#[derive(Debug)]
pub(super) struct Windows {
    quic: Rc<Connection>,
    memory: Rc<Account>,
    /// What holds the memory of the wider ones.
    widened: RefCell<Option<Held>>,
}

impl Windows {
    /// The first windows of a connection.
    pub(super) fn new(quic: Rc<Connection>, memory: Rc<Account>) -> Self {
        Self { quic, memory, widened: RefCell::default() }
    }

    /// Widens both if they are not wide and there is memory for it; whether it did.
    pub(super) fn widen(&self) -> bool {
        let mut widened = self.widened.borrow_mut();
        if widened.is_some() {
            return false;
        }
        *widened = self.memory.try_hold(MORE_BYTES);
        if widened.is_some() {
            self.quic.set_windows(WIDE_SEND_BYTES, WIDE_RECEIVE_BYTES);
        }
        widened.is_some()
    }

    /// Gives the memory of the wider ones back: there is no request.
    pub(super) fn narrow(&self) {
        if self.widened.take().is_some() {
            self.quic.set_windows(SEND_WINDOW_BYTES, RECEIVE_WINDOW_BYTES);
        }
    }
}
