//! [`Account`]: a number of held bytes with a limit, and [`Held`]: a part of it, counted until dropped.
//!
//! Invariants: what is counted in an account is counted in all accounts above it; a refusal changes
//! only the count of refusals.

use std::cell::Cell;
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub struct Account {
    held_bytes: Cell<usize>,
    peak_bytes: Cell<usize>,
    /// The peak since it was last taken.
    recent_peak_bytes: Cell<usize>,
    refused: Cell<u64>,
    /// The limit of the root account, shared by all accounts below it.
    root_limit_bytes: Rc<Cell<usize>>,
    /// This account's share of it.
    eighths: usize,
    above: Option<Rc<Account>>,
}

impl Account {
    pub(crate) fn root(bytes: usize) -> Rc<Self> {
        Self::new(Rc::new(Cell::new(bytes)), 8, None)
    }

    /// A root account without a limit.
    pub fn detached() -> Rc<Self> {
        Self::root(usize::MAX)
    }

    /// An account below another, limited to a number of eighths of the root's limit.
    pub fn below(above: &Rc<Self>, eighths: usize) -> Rc<Self> {
        Self::new(above.root_limit_bytes.clone(), eighths, Some(above.clone()))
    }

    fn new(root_limit_bytes: Rc<Cell<usize>>, eighths: usize, above: Option<Rc<Self>>) -> Rc<Self> {
        Rc::new(Self {
            held_bytes: Cell::new(0),
            peak_bytes: Cell::new(0),
            recent_peak_bytes: Cell::new(0),
            refused: Cell::new(0),
            root_limit_bytes,
            eighths,
            above,
        })
    }

    pub(crate) fn set_root_limit(&self, bytes: usize) {
        self.root_limit_bytes.set(bytes);
    }

    /// Bytes held now.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.get()
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak_bytes.get()
    }

    /// The peak since the last call.
    pub(crate) fn take_recent_peak_bytes(&self) -> usize {
        self.recent_peak_bytes.replace(self.held_bytes())
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// The limit.
    pub fn limit_bytes(&self) -> usize {
        self.root_limit_bytes.get() / 8 * self.eighths
    }

    /// Counts data that exists already, whatever the limits.
    pub fn hold(self: &Rc<Self>, bytes: usize) -> Held {
        self.add(bytes);
        Held { account: self.clone(), bytes }
    }

    /// Counts data that is to be held if all limits have room for it.
    pub fn try_hold(self: &Rc<Self>, bytes: usize) -> Option<Held> {
        self.try_add(bytes).then(|| Held { account: self.clone(), bytes })
    }

    /// Whether an account from here up is more than half full: what can go to disk should.
    pub fn is_scarce(&self) -> bool {
        self.upwards().any(|account| account.held_bytes() > account.limit_bytes() / 2)
    }

    /// Whether this account has reached its own limit.
    pub fn has_reached_its_limit(&self) -> bool {
        self.held_bytes() >= self.limit_bytes()
    }

    /// Whether this account, or one above it, has reached its limit.
    pub fn is_full(&self) -> bool {
        self.upwards().any(Self::has_reached_its_limit)
    }

    /// Counts a refusal.
    pub fn refuse(&self) {
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

/// Bytes counted until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Held {
    account: Rc<Account>,
    bytes: usize,
}

impl Held {
    /// Counts more, whatever the limits.
    pub fn grow(&mut self, bytes: usize) {
        self.account.add(bytes);
        self.bytes += bytes;
    }

    /// Counts more if all limits have room for it; otherwise returns false.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let grown = self.account.try_add(bytes);
        if grown {
            self.bytes += bytes;
        }
        grown
    }

    /// Counts less; not below zero.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.account.subtract(bytes);
        self.bytes -= bytes;
    }

    /// Sets the number of bytes, whatever the limits.
    pub fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => self.shrink(self.bytes - bytes),
        }
    }

    /// Bytes counted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The account.
    pub fn account(&self) -> &Rc<Account> {
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
    fn held_bytes_count_in_every_account_above_until_dropped() {
        let all = Account::root(800);
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
    fn a_brief_peak_is_reported_once() {
        let all = Account::root(800);
        drop(all.hold(300));
        let kept = all.hold(10);
        assert_eq!(all.take_recent_peak_bytes(), 300);
        assert_eq!(all.take_recent_peak_bytes(), 10);
        drop(all.hold(100));
        assert_eq!((all.take_recent_peak_bytes(), all.peak_bytes()), (110, 300));
        drop(kept);
    }

    #[test]
    fn each_limit_refuses_and_a_refusal_counts_nothing() {
        let all = Account::root(800);
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
    fn existing_data_counts_beyond_the_limit() {
        let all = Account::root(80);
        let held = all.hold(100);
        assert!(all.try_hold(1).is_none());
        all.set_root_limit(8);
        assert_eq!(all.held_bytes(), 100);
        drop(held);
        assert!(all.try_hold(8).is_some());
    }

    #[test]
    fn an_account_is_full_with_its_own_limit_or_one_above() {
        let all = Account::root(80);
        let (one, other) = (Account::below(&all, 4), Account::below(&all, 8));
        let held = one.hold(40);
        assert!(one.is_full() && one.has_reached_its_limit() && one.is_scarce());
        assert!(!all.is_full() && !other.is_full() && !other.is_scarce());
        let rest = other.hold(40);
        assert!(other.is_full() && !other.has_reached_its_limit());
        drop(held);
        assert!(!other.is_full());
        drop(rest);
    }

    #[test]
    fn a_sum_beyond_all_numbers_is_refused() {
        let all = Account::detached();
        let held = all.hold(100);
        assert!(Account::below(&all, 8).try_hold(usize::MAX - 50).is_none());
        assert_eq!(all.held_bytes(), 100);
        drop(held);
    }
}
