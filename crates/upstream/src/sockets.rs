//! [`Sockets`]: the number of connections to all hosts, idle and busy.
//!
//! Owned by the client; each transport holds a [`Socket`]. Invariant: the number never exceeds the limit.

use std::cell::Cell;
use std::rc::Rc;

/// The counter of connections and its limit.
#[derive(Debug)]
pub(crate) struct Sockets {
    most: usize,
    open: Cell<usize>,
}

impl Sockets {
    pub(crate) fn new(most: usize) -> Rc<Self> {
        Rc::new(Self { most, open: Cell::new(0) })
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Counts one more connection, unless the limit is reached.
    pub(crate) fn take(self: &Rc<Self>) -> Option<Socket> {
        if self.open.get() >= self.most {
            return None;
        }
        self.open.set(self.open.get() + 1);
        Some(Socket(self.clone()))
    }
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Socket(Rc<Sockets>);

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
    }
}
