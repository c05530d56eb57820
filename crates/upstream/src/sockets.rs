//! [`Sockets`]: how many connections there are to all hosts, idle ones and busy ones.
//!
//! Owned by the client; each transport holds a [`Socket`]. Invariant: there are never more than may be.

use std::cell::Cell;
use std::rc::Rc;

/// See the module.
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

    /// One more, if there may be.
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
