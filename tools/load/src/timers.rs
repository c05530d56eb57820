//! [`Timers`]: when connections have to be looked at even without an event.
//!
//! Owned by a worker; its connections set their own by an [`Alarm`]. Only those of QUIC have any.
//! Invariants: a connection has at most one entry, and it is no later than its earliest timer. An entry
//! is not moved back, since most timers are postponed by the next packet: a connection whose timer is
//! later sets it again when the entry expires.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Instant;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Instant, u32)>,
    by_place: Vec<Option<Instant>>,
}

impl Timers {
    pub(crate) fn new(connections: usize) -> Self {
        Self { by_time: BTreeSet::new(), by_place: vec![None; connections] }
    }

    /// The earliest.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes one that has expired; its connection.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<u32> {
        let (_, place) = self.by_time.first().copied().filter(|(at, _)| *at <= now)?;
        self.set(place, None);
        Some(place)
    }

    fn set(&mut self, place: u32, at: Option<Instant>) {
        let entry = &mut self.by_place[place as usize];
        if let Some(before) = std::mem::replace(entry, at) {
            self.by_time.remove(&(before, place));
        }
        if let Some(at) = at {
            self.by_time.insert((at, place));
        }
    }

    fn hasten(&mut self, place: u32, at: Instant) {
        if self.by_place[place as usize].is_none_or(|before| at < before) {
            self.set(place, Some(at));
        }
    }
}

/// The entry of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Alarm {
    timers: Rc<RefCell<Timers>>,
    place: u32,
}

impl Alarm {
    pub(crate) fn new(timers: Rc<RefCell<Timers>>, place: usize) -> Self {
        Self { timers, place: place as u32 }
    }

    /// The connection is looked at no later than `at`.
    pub(crate) fn hasten(&self, at: Option<Instant>) {
        if let Some(at) = at {
            self.timers.borrow_mut().hasten(self.place, at);
        }
    }

    /// The connection has no timer.
    pub(crate) fn clear(&self) {
        self.timers.borrow_mut().set(self.place, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_entry_is_only_moved_forward_and_expires_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let timers = Rc::new(RefCell::new(Timers::new(3)));
        let alarm = |place| Alarm::new(timers.clone(), place);
        alarm(1).hasten(Some(at(30)));
        alarm(2).hasten(Some(at(20)));
        alarm(1).hasten(Some(at(10)));
        alarm(1).hasten(Some(at(40)));
        alarm(1).hasten(None);
        alarm(0).hasten(Some(at(5)));
        alarm(0).clear();
        let mut timers = timers.borrow_mut();
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.expire(at(9)), None);
        assert_eq!(timers.expire(at(50)), Some(1));
        assert_eq!(timers.expire(at(50)), Some(2));
        assert_eq!((timers.expire(at(50)), timers.next()), (None, None));
    }
}
