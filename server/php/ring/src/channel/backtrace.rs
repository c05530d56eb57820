//! [`BacktraceSink`]: where the PHP backtrace of a request is written, by its worker or by the zygote.
//!
//! Both may do so at the same time. Invariant: the gateway reads a text that one of them has written
//! whole: the version is odd while one writes, and the other gives up then. (The peers can write
//! anything there, so nothing asserts what they have written.)

use super::mapping::{BACKTRACE_BYTES, Mapping};
use crate::frame::Tag;
use crate::memory::Memory;
use crate::sync::{Ordering, fence};
use std::sync::Arc;

const _: () = assert!(BACKTRACE_BYTES <= u32::MAX as usize, "the length of a text is one word");

/// See the module. No method allocates, waits or locks.
#[derive(Debug)]
pub struct BacktraceSink {
    mapping: Arc<Mapping>,
}

impl BacktraceSink {
    pub(super) fn new(mapping: Arc<Mapping>) -> Self {
        Self { mapping }
    }

    /// Writes the text, truncated to the room, as the backtrace of the request with this tag. Does
    /// nothing while the other process writes one.
    pub fn publish(&self, text: &[u8], tag: Tag) {
        let header = self.mapping.header();
        let version = header.backtrace_version.load(Ordering::Relaxed);
        let odd = version | 1;
        let begun = header.backtrace_version.compare_exchange(
            version & !1,
            odd,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if begun.is_err() {
            return;
        }
        // The odd version is seen before any byte of the new text is.
        fence(Ordering::Release);
        let text = &text[..text.len().min(BACKTRACE_BYTES)];
        self.mapping.backtrace().copy_in(0, text);
        header.backtrace_generation.store(tag.generation, Ordering::Relaxed);
        header.backtrace_len.store(text.len() as u32, Ordering::Relaxed);
        header.backtrace_version.store(odd.wrapping_add(1), Ordering::Release);
    }
}
