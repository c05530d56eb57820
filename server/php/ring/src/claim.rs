//! One atomic state word per request, shared by both sides. Compare-and-swap decides start/withdraw
//! races, and carries abort and pause without a frame.
//!
//! One word per lease, in the header of the ring. Invariants: a request is started or withdrawn,
//! never both; a word of another generation is left alone; the gateway names only words that exist.

use crate::frame::Tag;
use crate::sync::{AtomicU64, Ordering};

/// Leases of a worker: the most requests that it has at a time, including those that wait in its
/// ring. [`Tag::slot`] is below this.
pub const LEASES: usize = 1024;

/// The state of a request, in the lower half of the word; the upper half is its generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// The worker may start it, and the gateway may withdraw it.
    Offered = 1,
    /// The worker has started it.
    Started = 2,
    /// The gateway has withdrawn it.
    Withdrawn = 3,
    /// Its client has disconnected.
    Aborted = 4,
    /// The worker has started it, and its client does not read for now.
    Paused = 5,
}

impl State {
    /// Whether a request in this state may come into that one, by either side.
    fn precedes(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Offered, Self::Started | Self::Withdrawn)
                | (Self::Started, Self::Paused)
                | (Self::Paused, Self::Started)
        )
    }
}

/// The words of a worker's leases.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Claims([AtomicU64; LEASES]);

fn value(tag: Tag, state: State) -> u64 {
    u64::from(tag.generation) << 32 | state as u64
}

impl Claims {
    fn word(&self, tag: Tag) -> &AtomicU64 {
        &self.0[tag.slot as usize % LEASES]
    }

    /// Sets the state, whatever the word was before.
    pub(crate) fn set(&self, tag: Tag, state: State) {
        debug_assert!((tag.slot as usize) < LEASES, "{tag:?} would change the word of another");
        self.word(tag).store(value(tag, state), Ordering::Release);
    }

    /// Changes one state to another; false if the word has a third. If both sides try, one
    /// succeeds.
    pub(crate) fn exchange(&self, tag: Tag, from: State, to: State) -> bool {
        debug_assert!(from.precedes(to), "{from:?} does not become {to:?}");
        let (from, to) = (value(tag, from), value(tag, to));
        self.word(tag).compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn is(&self, tag: Tag, state: State) -> bool {
        self.word(tag).load(Ordering::Acquire) == value(tag, state)
    }
}
