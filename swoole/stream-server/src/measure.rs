//! [`Measure`]: the length of a message that a function of the program computes (`package_length_func`).
//!
//! Owned by a session. A worker gets the first bytes as an item and reports the length. Invariants: a
//! report counts only for the item that is under way, so that one of a worker that has died since
//! changes nothing; bytes are sent again only when more have arrived.

use std::cell::Cell;

/// The bytes that the function gets to see.
pub(crate) const MEASURED_BYTES: usize = 64 << 10;

/// What is known of the message that begins with the first pending byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not its length, and so many bytes are too few.
    Unknown(usize),
    /// So many bytes are with a worker, as this item.
    Requested { item: u64, bytes: usize },
    /// Its length.
    Known(usize),
    /// There cannot be such a message.
    Invalid,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Measure(Cell<State>);

/// What is to be done with the pending bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, until more bytes or a report arrive.
    Wait,
    /// So many of them are to be sent to a worker.
    Request(usize),
    /// A message of this length is to be taken.
    Take(usize),
    /// The connection is to be closed.
    Close,
}

impl Default for Measure {
    fn default() -> Self {
        Self(Cell::new(State::Unknown(0)))
    }
}

impl Measure {
    /// What follows from so many pending bytes.
    pub(crate) fn next(&self, pending: usize) -> Next {
        let visible = pending.min(MEASURED_BYTES);
        match self.0.get() {
            State::Unknown(bytes) if visible > bytes => Next::Request(visible),
            State::Unknown(MEASURED_BYTES) | State::Invalid => Next::Close,
            State::Unknown(_) | State::Requested { .. } => Next::Wait,
            State::Known(length) => Next::Take(length),
        }
    }

    /// These bytes are with a worker.
    pub(crate) fn requested(&self, item: u64, bytes: usize) {
        self.0.set(State::Requested { item, bytes });
    }

    /// The message was taken, and the next one begins.
    pub(crate) fn taken(&self) {
        self.0.set(State::Unknown(0));
    }

    /// A worker reports a length; 0: more bytes are needed, below 0 as a signed number: there is none.
    pub(crate) fn reported(&self, of: u64, length: u64) {
        if let State::Requested { item, bytes } = self.0.get()
            && item == of
        {
            self.0.set(match i64::try_from(length) {
                Ok(0) => State::Unknown(bytes),
                Ok(_) => State::Known(usize::try_from(length).unwrap_or(usize::MAX)),
                Err(_) => State::Invalid,
            });
        }
    }

    /// The item is over: without a report there is no message.
    pub(crate) fn finished(&self, item: u64) {
        self.reported(item, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_sent_again_only_when_more_have_arrived() {
        let measure = Measure::default();
        assert_eq!(measure.next(0), Next::Wait);
        assert_eq!(measure.next(3), Next::Request(3));
        measure.requested(7, 3);
        assert_eq!(measure.next(9), Next::Wait);
        measure.reported(7, 0);
        assert_eq!(measure.next(3), Next::Wait);
        assert_eq!(measure.next(4), Next::Request(4));
        measure.requested(8, 4);
        measure.reported(8, 12);
        assert_eq!(measure.next(4), Next::Take(12));
        measure.taken();
        assert_eq!(measure.next(1), Next::Request(1));
    }

    #[test]
    fn only_the_report_of_the_item_under_way_counts() {
        let measure = Measure::default();
        measure.requested(2, 5);
        measure.reported(1, 4);
        measure.finished(1);
        assert_eq!(measure.next(5), Next::Wait);
        measure.reported(2, 4);
        measure.reported(2, 5);
        measure.finished(2);
        assert_eq!(measure.next(5), Next::Take(4));
    }

    #[test]
    fn a_function_without_a_length_ends_the_connection() {
        let (silent, negative, hungry) =
            (Measure::default(), Measure::default(), Measure::default());
        silent.requested(1, 5);
        silent.finished(1);
        assert_eq!(silent.next(5), Next::Close);
        negative.requested(1, 5);
        negative.reported(1, u64::MAX);
        assert_eq!(negative.next(5), Next::Close);
        hungry.requested(1, MEASURED_BYTES);
        hungry.reported(1, 0);
        assert_eq!(hungry.next(MEASURED_BYTES * 2), Next::Close);
    }
}
