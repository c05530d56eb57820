//! [`Account`]: bytes that are held, and [`Held`]: some of them, counted until it is dropped.
//!
//! Invariants: what is counted in an account is counted in all above it; a request for more
//! that is refused changes nothing but the count of refusals.

use std::cell::Cell;
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Account {
    held_bytes: Cell<usize>,
    peak_bytes: Cell<usize>,
    /// The most since somebody asked last.
    recent_peak_bytes: Cell<usize>,
    refused: Cell<u64>,
    /// What all accounts together may hold; one number for all.
    whole_bytes: Rc<Cell<usize>>,
    /// The part of it that this one may.
    eighths: usize,
    above: Option<Rc<Account>>,
}

impl Account {
    pub(super) fn whole(bytes: usize) -> Rc<Self> {
        Self::new(Rc::new(Cell::new(bytes)), 8, None)
    }

    /// One that nobody else knows of, without a limit.
    pub(crate) fn detached() -> Rc<Self> {
        Self::whole(usize::MAX)
    }

    /// One that is a part of another. It may hold so many eighths of the whole.
    pub(crate) fn below(above: &Rc<Self>, eighths: usize) -> Rc<Self> {
        Self::new(above.whole_bytes.clone(), eighths, Some(above.clone()))
    }

    fn new(whole_bytes: Rc<Cell<usize>>, eighths: usize, above: Option<Rc<Self>>) -> Rc<Self> {
        Rc::new(Self {
            held_bytes: Cell::new(0),
            peak_bytes: Cell::new(0),
            recent_peak_bytes: Cell::new(0),
            refused: Cell::new(0),
            whole_bytes,
            eighths,
            above,
        })
    }

    pub(super) fn set_whole(&self, bytes: usize) {
        self.whole_bytes.set(bytes);
    }

    /// What is held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.get()
    }

    pub(super) fn peak_bytes(&self) -> usize {
        self.peak_bytes.get()
    }

    /// The most that was held since the last call.
    pub(super) fn take_recent_peak_bytes(&self) -> usize {
        self.recent_peak_bytes.replace(self.held_bytes())
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// What may be held.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.whole_bytes.get() / 8 * self.eighths
    }

    /// Counts what is held already, whatever the limits say.
    pub(crate) fn hold(self: &Rc<Self>, bytes: usize) -> Held {
        self.add(bytes);
        Held { account: self.clone(), bytes }
    }

    /// Counts what is to be held, if all limits have room for it.
    pub(crate) fn try_hold(self: &Rc<Self>, bytes: usize) -> Option<Held> {
        self.try_add(bytes).then(|| Held { account: self.clone(), bytes })
    }

    /// Whether what can go to disk should, and what need not be held is not.
    pub(crate) fn is_scarce(&self) -> bool {
        self.upwards().any(|account| account.held_bytes() > account.limit_bytes() / 2)
    }

    /// Whether it holds what it may itself.
    pub(crate) fn has_reached_its_limit(&self) -> bool {
        self.held_bytes() >= self.limit_bytes()
    }

    /// Whether there is no room for anything more.
    pub(crate) fn is_full(&self) -> bool {
        self.upwards().any(Self::has_reached_its_limit)
    }

    /// Counts a refusal.
    pub(crate) fn refuse(&self) {
        self.upwards().for_each(|account| account.refused.set(account.refused.get() + 1));
    }

    fn try_add(&self, bytes: usize) -> bool {
        let has_room =
            |account: &Self| account.held_bytes().saturating_add(bytes) <= account.limit_bytes();
        let fits = self.upwards().all(has_room);
        if fits {
            self.add(bytes)
        } else {
            self.refuse()
        }
        fits
    }

    fn add(&self, bytes: usize) {
        for account in self.upwards() {
            let held_bytes = account.held_bytes.get().saturating_add(bytes);
            account.held_bytes.set(held_bytes);
            if held_bytes > account.recent_peak_bytes.get() {
                account.recent_peak_bytes.set(held_bytes);
                account.peak_bytes.set(account.peak_bytes.get().max(held_bytes));
            }
        }
    }

    fn subtract(&self, bytes: usize) {
        for account in self.upwards() {
            account.held_bytes.set(account.held_bytes.get() - bytes);
        }
    }

    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |account| account.above.as_deref())
    }
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held {
    account: Rc<Account>,
    bytes: usize,
}

impl Held {
    /// Counts more that is held already.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.account.add(bytes);
        self.bytes += bytes;
    }

    /// Counts more that is to be held; false when a limit has no room for it.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let grown = self.account.try_add(bytes);
        if grown {
            self.bytes += bytes;
        }
        grown
    }

    /// Counts so much less.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.account.subtract(bytes);
        self.bytes -= bytes;
    }

    /// Counts as much from now on, whatever the limits say.
    pub(crate) fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => self.shrink(self.bytes - bytes),
        }
    }

    /// What is counted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it is counted.
    pub(crate) fn account(&self) -> &Rc<Account> {
        &self.account
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.subtract(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_in_every_account_above_until_it_is_dropped() {
        let all = Account::whole(800);
        let (one, other) = (Account::below(&all, 4), Account::below(&all, 4));
        let mut first = one.hold(100);
        let second = other.hold(50);
        first.grow(200);
        assert_eq!((one.held_bytes(), other.held_bytes(), all.held_bytes()), (300, 50, 350));
        first.shrink(290);
        assert_eq!((one.held_bytes(), all.held_bytes()), (10, 60));
        first.set(30);
        assert_eq!((first.bytes(), all.held_bytes()), (30, 80));
        first.set(0);
        assert_eq!((first.bytes(), all.held_bytes()), (0, 50));
        drop((first, second));
        assert_eq!((one.held_bytes(), all.held_bytes(), all.peak_bytes()), (0, 0, 350));
    }

    #[test]
    fn what_was_held_for_a_moment_is_in_the_peak_since_the_last_look() {
        let all = Account::whole(800);
        drop(all.hold(300));
        let kept = all.hold(10);
        assert_eq!(all.take_recent_peak_bytes(), 300);
        assert_eq!(all.take_recent_peak_bytes(), 10);
        drop(all.hold(100));
        assert_eq!((all.take_recent_peak_bytes(), all.peak_bytes()), (110, 300));
        drop(kept);
    }

    #[test]
    fn more_is_refused_by_each_limit_and_then_nothing_is_counted() {
        let all = Account::whole(800);
        let (one, other) = (Account::below(&all, 4), Account::below(&all, 8));
        assert!(one.try_hold(401).is_none(), "its own limit");
        let mut held = one.try_hold(400).unwrap();
        assert!(!held.try_grow(1));
        assert!(other.try_hold(401).is_none(), "that of all");
        let rest = other.try_hold(400).unwrap();
        assert_eq!((one.refused(), other.refused(), all.refused()), (2, 1, 3));
        drop((held, rest));
        assert_eq!((one.held_bytes(), all.held_bytes()), (0, 0));
    }

    #[test]
    fn what_is_at_hand_is_counted_beyond_the_limit_and_a_smaller_limit_takes_nothing_away() {
        let all = Account::whole(80);
        let held = all.hold(100);
        assert!(all.try_hold(1).is_none());
        all.set_whole(8);
        assert_eq!(all.held_bytes(), 100);
        drop(held);
        assert!(all.try_hold(8).is_some());
    }
}
