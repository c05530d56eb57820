//! [`Interims`]: answers before the answer (RFC 9110 15.2), for who passes them on.
//!
//! Filled while a request waits for its answer, emptied by the task that waits. Invariant: what is of
//! the connection is not among them (100, 101).

use std::cell::RefCell;
use std::collections::VecDeque;

/// Those that have come and were not taken yet.
#[derive(Debug, Default)]
pub struct Interims {
    arrived: RefCell<VecDeque<Interim>>,
}

/// An answer before the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interim {
    /// 102 to 199.
    pub status: u16,
    /// Header lines `Name: value`, each ended by a newline, without those of the connection.
    pub headers: Vec<u8>,
}

impl Interims {
    pub(crate) fn add(&self, status: u16, headers: Vec<u8>) {
        // 100 answers an expectation that is never passed on.
        if status > 101 {
            self.arrived.borrow_mut().push_back(Interim { status, headers });
        }
    }

    /// The first of them.
    pub fn take(&self) -> Option<Interim> {
        self.arrived.borrow_mut().pop_front()
    }

    /// Whether none has come.
    pub fn is_empty(&self) -> bool {
        self.arrived.borrow().is_empty()
    }
}
