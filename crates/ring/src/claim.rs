//! What became of a request, in a word that both sides change: who of the two was first is decided
//! here, and what the one has to tell the other about it without a frame.
//!
//! One word a lease, in the ring's page. Invariants: a request is started or withdrawn, never both;
//! a word that is about another request than one's own is left alone.

use crate::frame::Tag;
use crate::sync::{AtomicU64, Ordering};

/// Leases of a worker: requests that it may have at a time, those that wait in its ring among them.
/// [`Tag::slot`] is below this.
pub const LEASES: usize = 1024;

/// How it stands with a request, below its generation in the upper half of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// The worker may start it, the gateway may withdraw it.
    Offered = 1,
    /// The worker has it.
    Started = 2,
    /// The gateway has taken it back.
    Withdrawn = 3,
    /// Its client has gone.
    Aborted = 4,
    /// The worker has it, and its client takes nothing for now.
    Paused = 5,
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

    /// Whatever it was about before.
    pub(crate) fn set(&self, tag: Tag, state: State) {
        self.word(tag).store(value(tag, state), Ordering::Release);
    }

    /// From one state to another; false when it is in a third. Of two that try, one succeeds.
    pub(crate) fn turn(&self, tag: Tag, from: State, to: State) -> bool {
        let (from, to) = (value(tag, from), value(tag, to));
        self.word(tag).compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn is(&self, tag: Tag, state: State) -> bool {
        self.word(tag).load(Ordering::Acquire) == value(tag, state)
    }
}
