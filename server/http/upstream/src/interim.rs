//! [`Interims`]: interim responses (RFC 9110 15.2), for callers that forward them.
//!
//! Filled while a request waits for its response, drained by the waiting task. Invariant: responses that
//! concern the connection (100, 101) are not among them.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Interim responses that have arrived and were not taken yet.
#[derive(Debug, Default)]
pub struct Interims {
    arrived: RefCell<VecDeque<Interim>>,
}

/// An interim response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interim {
    /// 102 to 199.
    pub status: u16,
    /// Header lines `Name: value`, each ended by a newline, without those of the connection.
    pub headers: Vec<u8>,
}

impl Interims {
    pub(crate) fn add(&self, status: u16, headers: Vec<u8>) {
        // 100 answers an expectation, which is never forwarded.
        if status > 101 {
            self.arrived.borrow_mut().push_back(Interim { status, headers });
        }
    }

    /// The oldest one.
    pub fn take(&self) -> Option<Interim> {
        self.arrived.borrow_mut().pop_front()
    }

    /// Whether none has arrived.
    pub fn is_empty(&self) -> bool {
        self.arrived.borrow().is_empty()
    }
}
