//! One atomic state word per request, shared by both sides. Compare-and-swap decides start/withdraw
//! races, and carries abort and pause without a frame.
//!
//! One word per lease and per direct connection, in the header of the ring. Invariants: a request is started or withdrawn,
//! never both; a word of another generation is left alone; the gateway names only words that exist.

use crate::frame::Tag;
use crate::sync::{AtomicU64, Ordering};

/// Leases of a worker: the most requests that it has at a time, including those that wait in its
/// ring. [`Tag::slot`] is below this.
pub const LEASES: usize = 1024;

/// Direct connections of a worker, the most at a time. Their words follow those of the leases: the slot of a
/// request on one is [`LEASES`] or more.
pub const DIRECT_CONNECTIONS: usize = 512;

/// Whether a tag is that of a direct connection.
pub fn is_direct(tag: Tag) -> bool {
    (LEASES..LEASES + DIRECT_CONNECTIONS).contains(&(tag.slot as usize))
}

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
    /// A direct connection without a request: the worker may read from it, and the gateway may take it back.
    Parked = 6,
    /// The worker reads from a direct connection.
    Reading = 7,
    /// The worker runs a request of a direct connection; either side may make an ordinary started one of it.
    Direct = 8,
    /// The worker writes its response to the socket.
    Answering = 9,
    /// The same, and the connection goes back to the gateway then.
    Leaving = 10,
}

impl State {
    /// Whether a request in this state may come into that one, by either side.
    fn precedes(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Offered, Self::Started | Self::Withdrawn)
                | (Self::Started, Self::Paused)
                | (Self::Paused, Self::Started)
                | (Self::Parked, Self::Reading | Self::Withdrawn)
                | (Self::Reading, Self::Direct | Self::Parked | Self::Withdrawn)
                | (Self::Direct, Self::Started | Self::Answering)
                | (Self::Answering, Self::Parked | Self::Leaving | Self::Withdrawn)
                | (Self::Leaving, Self::Withdrawn)
        )
    }
}

/// The words of a worker's leases.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Claims([AtomicU64; LEASES + DIRECT_CONNECTIONS]);

fn value(tag: Tag, state: State) -> u64 {
    u64::from(tag.generation) << 32 | state as u64
}

impl Claims {
    fn word(&self, tag: Tag) -> &AtomicU64 {
        &self.0[tag.slot as usize % self.0.len()]
    }

    /// Sets the state, whatever the word was before.
    pub(crate) fn set(&self, tag: Tag, state: State) {
        debug_assert!(
            (tag.slot as usize) < self.0.len(),
            "{tag:?} would change the word of another"
        );
        self.word(tag).store(value(tag, state), Ordering::Release);
    }

    /// Changes one state to another; false if the word has a third. If both sides try, one
    /// succeeds.
    pub(crate) fn exchange(&self, tag: Tag, from: State, to: State) -> bool {
        self.exchange_tag((tag, from), (tag, to))
    }

    /// The same where the generation changes as well: a direct connection has one for each request.
    pub(crate) fn exchange_tag(&self, from: (Tag, State), to: (Tag, State)) -> bool {
        debug_assert!(from.1.precedes(to.1), "{from:?} does not become {to:?}");
        debug_assert_eq!(from.0.slot, to.0.slot, "another word");
        let (word, before, after) = (self.word(from.0), value(from.0, from.1), value(to.0, to.1));
        word.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn is(&self, tag: Tag, state: State) -> bool {
        self.word(tag).load(Ordering::Acquire) == value(tag, state)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Barrier;

    const STATES: [State; 10] = [
        State::Offered,
        State::Started,
        State::Withdrawn,
        State::Aborted,
        State::Paused,
        State::Parked,
        State::Reading,
        State::Direct,
        State::Answering,
        State::Leaving,
    ];

    fn claims() -> Claims {
        Claims(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    #[test]
    fn an_empty_word_is_in_no_state() {
        let (claims, tag) = (claims(), Tag { slot: 0, generation: 0 });
        assert!(STATES.iter().all(|state| !claims.is(tag, *state)));
        assert!(!claims.exchange(tag, State::Offered, State::Started));
    }

    #[test]
    fn a_late_exchange_leaves_the_next_request_of_the_lease_alone() {
        let claims = claims();
        let late = Tag { slot: LEASES as u32 - 1, generation: 7 };
        let next = Tag { generation: 8, ..late };
        claims.set(late, State::Offered);
        claims.set(next, State::Offered);
        assert!(!claims.exchange(late, State::Offered, State::Withdrawn));
        assert!(claims.is(next, State::Offered));
        assert!(!claims.is(late, State::Offered));
    }

    #[test]
    fn a_request_for_which_both_sides_race_is_had_by_one() {
        let claims = claims();
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        let barrier = Barrier::new(2);
        let race = |to: State| {
            let won = (0..rounds).map(|round| {
                let tag = Tag { slot: 5, generation: round };
                barrier.wait();
                if to == State::Started {
                    claims.set(tag, State::Offered);
                }
                barrier.wait();
                let won = claims.exchange(tag, State::Offered, to);
                barrier.wait();
                won
            });
            won.collect::<Vec<bool>>()
        };
        let (started, withdrawn) = std::thread::scope(|scope| {
            let worker = scope.spawn(|| race(State::Started));
            (race(State::Withdrawn), worker.join().unwrap())
        });
        assert!(started.iter().zip(&withdrawn).all(|(one, other)| one != other));
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "Miri takes minutes")]
        fn an_exchange_succeeds_only_from_its_state_and_its_generation(
            present in 0..STATES.len(), change in 0..14_usize, is_late: bool,
            slot in 0..(LEASES + DIRECT_CONNECTIONS) as u32,
        ) {
            let pairs = STATES.into_iter().flat_map(|from| STATES.map(|to| (from, to)));
            let (from, to) = pairs.filter(|(from, to)| from.precedes(*to)).nth(change).unwrap();
            let present = STATES[present];
            let claims = claims();
            let tag = Tag { slot, generation: 9 };
            claims.set(tag, present);
            let named = Tag { generation: 9 + u32::from(is_late), ..tag };
            let expected = present == from && !is_late;
            prop_assert_eq!(claims.exchange(named, from, to), expected);
            let next = if expected { to } else { present };
            prop_assert!(claims.is(tag, next));
            let others = claims.0.iter().enumerate().filter(|(index, _)| *index != slot as usize);
            prop_assert!(others.into_iter().all(|(_, word)| word.load(Ordering::Relaxed) == 0));
        }
    }
}
