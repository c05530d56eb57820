//! How much the loop may do about what workers say before its sockets have their turn.
//!
//! Lent to the pools by the loop's idle hook. Invariants: a worker that never stops talking is left
//! after its share of a look, and all of them together after a moment; what is left is looked at in
//! the next turn. Quiet rings cost no look at the clock.

use outboard_ring::channel::Capacities;
use outboard_ring::frame::FRAME_HEADER_BYTES;
use std::time::{Duration, Instant};

/// What all workers may take of a turn.
const TURN: Duration = Duration::from_millis(1);
/// Frames between two looks at the clock; as many bytes count as one.
const FRAMES_A_GLANCE: u32 = 32;
const BYTES_A_FRAME: u32 = 4096;

/// For all workers in one turn of the loop.
#[derive(Debug, Default)]
pub struct Budget {
    handled: u32,
    started: Option<Instant>,
    is_spent: bool,
}

impl Budget {
    /// Counts a frame.
    pub(super) fn count(&mut self, len: usize) {
        let bytes = u32::try_from(len).unwrap_or(u32::MAX);
        self.handled = self.handled.saturating_add(1 + bytes / BYTES_A_FRAME);
        if self.handled >= FRAMES_A_GLANCE {
            self.handled = 0;
            self.glance();
        }
    }

    /// Counts something that may take longer than a frame.
    pub(super) fn glance(&mut self) {
        let started = *self.started.get_or_insert_with(Instant::now);
        self.is_spent |= started.elapsed() >= TURN;
    }

    /// Whether the rest has to wait for the next turn.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }
}

/// For one worker in one look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    frames: u32,
    bytes: usize,
}

impl Share {
    /// Of one that may go on.
    pub(super) const LOOK: Self = Self { frames: 256, bytes: RING_BYTES };
    /// Of one that has gone: all that its ring can hold.
    pub(super) const LAST: Self =
        Self { frames: (RING_BYTES / FRAME_HEADER_BYTES) as u32, bytes: RING_BYTES };

    /// Takes a frame's part.
    pub(super) fn count(&mut self, len: usize) {
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(len + FRAME_HEADER_BYTES);
    }

    pub(super) fn is_spent(self) -> bool {
        self.frames == 0 || self.bytes == 0
    }
}

const RING_BYTES: usize = Capacities::DEFAULT.response_bytes as usize;
