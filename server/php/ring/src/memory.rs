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

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A region of eight bytes within twelve.
    fn with_region(act: impl FnOnce(SharedRegion)) -> [u8; 12] {
        let mut bytes = [1; 12];
        let start = NonNull::new(&raw mut bytes).unwrap().cast::<u8>();
        // SAFETY: two bytes before and after the eight are within the array, which outlives the region, and
        // no reference to it is formed before `act` has returned.
        act(unsafe { SharedRegion::new(start.add(2), 8) });
        bytes
    }

    #[test]
    fn what_was_moved_out_leaves_zeros_and_a_copy_leaves_the_bytes() {
        let bytes = with_region(|region| {
            region.copy_in(0, b"abcdefgh");
            let (mut copied, mut moved) = ([0; 4], [0; 3]);
            region.copy_out(4, &mut copied);
            region.move_out(1, &mut moved);
            assert_eq!((&copied, &moved), (b"efgh", b"bcd"));
            region.copy_in(8, b"");
            region.move_out(8, &mut []);
        });
        assert_eq!(&bytes, b"\x01\x01a\0\0\0efgh\x01\x01");
    }

    #[test]
    fn an_access_beyond_the_region_panics_and_touches_nothing() {
        for at in [1, 7, 8, 9, usize::MAX - 7, usize::MAX] {
            let bytes = with_region(|region| {
                let accesses: [&dyn Fn(); 3] = [
                    &|| region.copy_in(at, &[9; 8]),
                    &|| region.copy_out(at, &mut [0; 8]),
                    &|| region.move_out(at, &mut [0; 8]),
                ];
                for access in accesses {
                    assert!(catch_unwind(AssertUnwindSafe(access)).is_err(), "at {at}");
                }
            });
            assert_eq!(bytes, [1; 12]);
        }
    }
}
