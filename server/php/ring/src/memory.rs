//! [`Memory`]: the bytes of a ring, in shared memory or, in tests, on the heap.
//!
//! Used by [`crate::spsc`]. Invariant: the ring masks positions before, so an implementation gets
//! `at + len <= capacity`, and asserts it.

use std::ptr::NonNull;

/// Byte storage that two processes (or two loom threads) copy into and move out of.
pub trait Memory {
    /// Copies `source` to offset `at`.
    fn copy_in(&self, at: usize, source: &[u8]);
    /// Moves from offset `at` into `target`: zeros remain.
    fn move_out(&self, at: usize, target: &mut [u8]);
}

/// A region inside of a mapping that another process maps as well.
#[derive(Debug, Clone, Copy)]
pub struct SharedRegion {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it only names bytes that another process accesses at any time; its methods copy them, and no
// reference to them exists. Which end may access which bytes is the ring's rule, not the thread's.
unsafe impl Send for SharedRegion {}

impl SharedRegion {
    /// Names `len` bytes from `start`.
    ///
    /// # Safety
    /// * `start..start + len` stays mapped readable and writable for as long as the value lives.
    /// * No Rust reference to any byte of it is ever formed; access goes through this type.
    pub(crate) unsafe fn new(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len }
    }

    fn pointer(&self, at: usize, len: usize) -> *mut u8 {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "ring access {at}+{len} outside of {}",
            self.len
        );
        // SAFETY: in bounds of the mapping, by the assertion above.
        unsafe { self.start.as_ptr().add(at) }
    }
}

impl SharedRegion {
    /// Copies from offset `at` into `target`.
    pub(crate) fn copy_out(&self, at: usize, target: &mut [u8]) {
        let source = self.pointer(at, target.len());
        // SAFETY: as in `copy_in`, with the roles exchanged. A peer that breaks the protocol can
        // change the bytes while they are copied; every bit pattern is a valid `u8`, and the
        // copy is validated afterwards and is the only thing used.
        unsafe { std::ptr::copy_nonoverlapping(source, target.as_mut_ptr(), target.len()) }
    }
}

impl Memory for SharedRegion {
    fn copy_in(&self, at: usize, source: &[u8]) {
        let target = self.pointer(at, source.len());
        // SAFETY:
        // * `target` is valid for `source.len()` bytes (checked by `pointer`).
        // * `source` is a Rust slice, so it cannot overlap the mapping (contract of `new`).
        // * the peer does not read these bytes before the ring publishes them; a peer that
        //   breaks the protocol reads garbage, which it could have produced by itself.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), target, source.len()) }
    }

    fn move_out(&self, at: usize, target: &mut [u8]) {
        let source = self.pointer(at, target.len());
        self.copy_out(at, target);
        // SAFETY: `pointer` has checked the bounds; the bytes are the consumer's until it releases them.
        unsafe { std::ptr::write_bytes(source, 0, target.len()) }
    }
}
