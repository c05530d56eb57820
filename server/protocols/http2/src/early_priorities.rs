//! [`EarlyPriorities`]: of streams that the client has not opened yet (RFC 9218 7.1).
//!
//! Owned by `connection`. Invariant: there are few, whatever a client sends; those of streams that were not opened in
//! their turn are forgotten.

use outboard_http_semantics::Priority;

/// More are ignored.
const PRIORITIES_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct EarlyPriorities(Vec<(u32, Priority)>);

impl EarlyPriorities {
    /// Replaces the priority of a stream.
    pub(crate) fn set(&mut self, id: u32, priority: Priority) {
        self.0.retain(|(other, _)| *other != id);
        if self.0.len() < PRIORITIES_MAX {
            self.0.push((id, priority));
        }
    }

    /// The update that preceded a stream. Those of earlier ones, which were not opened, are removed.
    pub(crate) fn take(&mut self, id: u32) -> Option<Priority> {
        if self.0.is_empty() {
            return None;
        }
        let found = self.0.iter().find(|(other, _)| *other == id);
        let priority = found.map(|(_, priority)| *priority);
        self.0.retain(|(other, _)| *other > id);
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urgency(urgency: u8) -> Priority {
        Priority { urgency, ..Priority::default() }
    }

    #[test]
    fn the_latest_priority_of_a_stream_is_taken_once() {
        let mut early = EarlyPriorities::default();
        early.set(5, urgency(1));
        early.set(5, urgency(2));
        early.set(3, urgency(7));
        assert_eq!(early.take(5), Some(urgency(2)));
        assert_eq!([early.take(3), early.take(5)], [None, None], "stream 3 was never opened");
    }

    #[test]
    fn a_client_cannot_store_many() {
        let mut early = EarlyPriorities::default();
        (1..1_000).step_by(2).for_each(|id| early.set(id, urgency(0)));
        let taken = (1..1_000).step_by(2).filter(|&id| early.take(id).is_some()).count();
        assert_eq!(taken, PRIORITIES_MAX);
    }
}
