//! [`BacktraceSink`]: where the worker's signal handler writes a PHP backtrace.

use super::mapping::{BACKTRACE_BYTES, Mapping};
use crate::frame::Tag;
use crate::memory::Memory;
use crate::sync::Ordering;
use std::rc::Rc;

/// See the module. All of it is async-signal-safe: memory copies and atomics, no allocation, no
/// locks.
#[derive(Debug)]
pub struct BacktraceSink {
    mapping: Rc<Mapping>,
}

impl BacktraceSink {
    pub(super) fn new(mapping: Rc<Mapping>) -> Self {
        Self { mapping }
    }

    /// Copies `text` to offset `at`, truncated to the room.
    pub fn write(&self, at: usize, text: &[u8]) {
        let room = BACKTRACE_BYTES.saturating_sub(at);
        let text = &text[..text.len().min(room)];
        if !text.is_empty() {
            self.mapping.backtrace().copy_in(at, text);
        }
    }

    /// Publishes the first `len` bytes as the backtrace of the request with this tag.
    pub fn publish(&self, len: usize, tag: Tag) {
        let header = self.mapping.header();
        header.backtrace_generation.store(tag.generation, Ordering::Relaxed);
        header.backtrace_len.store(len.min(BACKTRACE_BYTES) as u32, Ordering::Release);
    }
}
