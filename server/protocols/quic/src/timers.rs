//! [`Timers`]: the next timer of each connection.
//!
//! Owned by the endpoint. Invariant: a connection has at most one entry.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Instant;

/// See the module.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    by_time: BTreeSet<(Instant, K)>,
    by_key: HashMap<K, Instant>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_key: HashMap::new() }
    }
}

impl<K: Ord + Hash + Copy> Timers<K> {
    /// Sets or removes the timer of a connection.
    pub(crate) fn set(&mut self, key: K, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.by_key.insert(key, at),
            None => self.by_key.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, key));
        }
        if let Some(at) = at {
            self.by_time.insert((at, key));
        }
    }

    /// The earliest timer.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes a timer that has expired; its connection.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<K> {
        let (at, key) = self.by_time.first().copied().filter(|(at, _)| *at <= now)?;
        self.by_time.remove(&(at, key));
        self.by_key.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_connection_has_one_timer_which_expires_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        timers.set(1, Some(at(30)));
        timers.set(2, Some(at(20)));
        timers.set(1, Some(at(10)));
        timers.set(3, Some(at(5)));
        timers.set(3, None);
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.expire(at(9)), None);
        assert_eq!(timers.expire(at(40)), Some(1));
        assert_eq!(timers.expire(at(40)), Some(2));
        assert_eq!((timers.expire(at(40)), timers.next()), (None, None));
    }

    #[test]
    fn a_timer_that_is_moved_expires_at_its_new_time_only() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        assert_eq!((timers.next(), timers.expire(at(1_000))), (None, None));
        timers.set(1, None);
        for ms in [5, 50, 50, 20] {
            timers.set(1, Some(at(ms)));
            assert_eq!((timers.by_time.len(), timers.by_key.len()), (1, 1));
        }
        assert_eq!(timers.expire(at(19)), None);
        assert_eq!(timers.expire(at(20)), Some(1));
        timers.set(1, Some(at(20)));
        timers.set(2, Some(at(20)));
        assert_eq!([timers.expire(at(20)), timers.expire(at(20))], [Some(1), Some(2)]);
        assert!(timers.by_key.is_empty());
    }
}
