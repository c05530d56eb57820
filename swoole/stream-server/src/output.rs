//! [`Output`]: bytes on their way to a client that may read slowly.
//!
//! Invariant: what it holds is counted in the app's account of operations.

use outboard_buffer::{Account, Held};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// The number of them that were written.
    written: usize,
    held: Held,
}

impl Output {
    pub(crate) fn new(account: &Rc<Account>) -> Self {
        Self { bytes: Vec::new(), written: 0, held: account.hold(0) }
    }

    /// Appends bytes; false if there is no memory for them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if self.held.try_grow(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
            return true;
        }
        false
    }

    /// Bytes that are not written.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Counts written bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
        if self.written == self.bytes.len() {
            self.bytes = Vec::new();
        } else if self.written > self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
        } else {
            return;
        }
        self.written = 0;
        self.held.set(self.bytes.len());
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.held.account());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_released() {
        let account = Account::detached();
        let mut output = Output::new(&account);
        assert!(output.push(b"12345") && output.push(b"67890"));
        output.advance(4);
        assert_eq!((output.pending(), account.held_bytes()), (&b"567890"[..], 10));
        output.advance(3);
        assert_eq!((output.pending(), account.held_bytes()), (&b"890"[..], 3));
        output.advance(3);
        assert_eq!((output.pending(), account.held_bytes()), (&b""[..], 0));
    }
}
