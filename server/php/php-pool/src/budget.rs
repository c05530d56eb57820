//! How many frames of workers are processed before the loop's sockets have their turn.
//!
//! Owned by the loop's idle hook, which passes it to the pools. Invariants: a worker with unlimited
//! frames is interrupted after its share, and all workers together after [`TURN`]; the remaining frames
//! are processed in the next turn. Empty rings cost no system call for the clock.

use outboard_ring::channel::Capacities;
use outboard_ring::frame::FRAME_HEADER_BYTES;
use std::time::{Duration, Instant};

/// The time of all workers together in a turn.
const TURN: Duration = Duration::from_millis(1);
/// Frames between two checks of the clock; so many bytes count as one more.
const FRAMES_PER_CHECK: u32 = 32;
const BYTES_PER_FRAME: u32 = 4096;

/// For all workers in one turn of the loop.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    handled: u32,
    started: Option<Instant>,
    is_spent: bool,
}

impl Budget {
    /// Counts a frame.
    pub(crate) fn count(&mut self, len: usize) {
        let bytes = u32::try_from(len).unwrap_or(u32::MAX);
        self.handled = self.handled.saturating_add(1 + bytes / BYTES_PER_FRAME);
        if self.handled >= FRAMES_PER_CHECK {
            self.handled = 0;
            self.check_clock();
        }
    }

    /// Counts work that may take longer than a frame.
    pub(crate) fn check_clock(&mut self) {
        let started = *self.started.get_or_insert_with(Instant::now);
        self.is_spent |= started.elapsed() >= TURN;
    }

    /// Whether the rest has to wait for the next turn.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent
    }
}

/// For one worker in one poll.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    frames: u32,
    bytes: usize,
}

impl Share {
    /// Of a worker that runs.
    pub(crate) const POLL: Self = Self { frames: 256, bytes: RING_BYTES };
    /// Of a worker that has exited: everything that its ring can hold.
    pub(crate) const FINAL: Self =
        Self { frames: (RING_BYTES / FRAME_HEADER_BYTES) as u32, bytes: RING_BYTES };

    /// Counts a frame.
    pub(crate) fn count(&mut self, len: usize) {
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(len + FRAME_HEADER_BYTES);
    }

    pub(crate) fn is_spent(self) -> bool {
        self.frames == 0 || self.bytes == 0
    }
}

const _: () = assert!(FRAMES_PER_CHECK < Share::POLL.frames, "the clock is read within a share");

const RING_BYTES: usize = Capacities::DEFAULT.response_bytes as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_limited_by_frames_and_by_bytes() {
        let mut frames = Share::POLL;
        let counted = (0..1_000).take_while(|_| {
            frames.count(0);
            !frames.is_spent()
        });
        assert_eq!(counted.count(), 255);
        let mut bytes = Share::POLL;
        bytes.count(RING_BYTES / 2);
        assert!(!bytes.is_spent());
        bytes.count(RING_BYTES / 2);
        assert!(bytes.is_spent());
    }

    #[test]
    fn the_final_share_covers_all_frames_that_a_ring_can_hold() {
        let mut share = Share::FINAL;
        for _ in 1..RING_BYTES / FRAME_HEADER_BYTES {
            share.count(0);
        }
        assert!(!share.is_spent());
    }

    #[test]
    fn a_budget_ends_after_its_time_and_not_before_the_first_check() {
        let mut budget = Budget::default();
        budget.count(0);
        assert!(budget.started.is_none(), "few frames do not read the clock");
        budget.count(usize::MAX);
        assert!(budget.started.is_some(), "many bytes do");
        budget.started = Some(Instant::now() - TURN);
        budget.check_clock();
        assert!(budget.is_spent());
    }
}
