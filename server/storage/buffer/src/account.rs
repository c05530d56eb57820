//! [`Account`]: a number of held bytes with a limit, and [`Held`]: a part of it, counted until dropped.
//!
//! An account is one shard's part of a [`Ledger`], whose limit holds for all shards together. It leases
//! bytes from there, so that what is held and released changes only memory of the shard. What it reports is
//! of all shards: exact for the only one; of others, what they have leased counts. Invariants: what is
//! counted in an account is counted in all accounts above it; a refusal changes only the count of refusals.

use crate::lease::Lease;
use crate::ledger::Ledger;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Account {
    lease: Lease,
    ledger: Arc<Ledger>,
    above: Option<Rc<Account>>,
    /// Those below this one whose limits are of all shards, by name.
    named: RefCell<Vec<(Box<str>, Weak<Account>)>>,
}

impl Account {
    /// A shard's part of a ledger of everything.
    pub(crate) fn of(ledger: Arc<Ledger>) -> Rc<Self> {
        Self::new(ledger, None)
    }

    /// A root account without a limit.
    pub fn detached() -> Rc<Self> {
        Self::of(Ledger::root(1, usize::MAX))
    }

    /// An account of this shard below another, limited to a number of eighths of the root's limit.
    pub fn below(above: &Rc<Self>, eighths: usize) -> Rc<Self> {
        Self::new(above.ledger.of_shard(eighths), Some(above.clone()))
    }

    /// The account of this name below another, with a limit for those of all shards. A shard has one, since
    /// what one leases no other can use.
    pub fn shared_below(above: &Rc<Self>, name: &str, eighths: usize) -> Rc<Self> {
        let mut named = above.named.borrow_mut();
        named.retain(|(_, account)| account.strong_count() > 0);
        let known = named.iter().find(|(known, _)| **known == *name);
        known.and_then(|(_, account)| account.upgrade()).unwrap_or_else(|| {
            let new = Self::new(above.ledger.named(name, eighths), Some(above.clone()));
            named.push((name.into(), Rc::downgrade(&new)));
            new
        })
    }

    fn new(ledger: Arc<Ledger>, above: Option<Rc<Self>>) -> Rc<Self> {
        Rc::new(Self { lease: ledger.lease(), ledger, above, named: RefCell::default() })
    }

    pub(crate) fn set_root_limit(&self, bytes: usize) {
        self.ledger.set_root_limit(bytes);
    }

    /// Gives back what the limit, which has changed, does not allow to have unused.
    pub(crate) fn adapt(&self) {
        self.lease.adapt(self.limit_bytes());
    }

    /// Bytes held now.
    pub fn held_bytes(&self) -> usize {
        self.lease.used_by_all()
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        self.ledger.peak_bytes()
    }

    /// Bytes that this shard holds now.
    pub(crate) fn own_bytes(&self) -> usize {
        self.lease.used()
    }

    /// The peak since the last call.
    pub(crate) fn take_recent_peak_bytes(&self) -> usize {
        self.ledger.take_recent_peak_bytes(self.held_bytes())
    }

    pub(crate) fn refused(&self) -> u64 {
        self.ledger.refused()
    }

    /// The limit.
    pub fn limit_bytes(&self) -> usize {
        self.ledger.limit_bytes()
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
        self.upwards().for_each(|account| account.ledger.refuse());
    }

    fn try_add(&self, bytes: usize) -> bool {
        let fits = |account: &Self| account.lease.try_add(bytes, account.limit_bytes());
        let full = self.upwards().position(|account| !fits(account));
        match full {
            None => self.note(),
            Some(count) => {
                self.upwards().take(count).for_each(|account| account.lease.subtract(bytes));
                self.refuse();
            }
        }
        full.is_none()
    }

    fn add(&self, bytes: usize) {
        self.upwards().for_each(|account| account.lease.add(bytes, account.limit_bytes()));
        self.note();
    }

    fn note(&self) {
        self.upwards().for_each(|account| account.ledger.note(account.held_bytes()));
    }

    fn subtract(&self, bytes: usize) {
        self.upwards().for_each(|account| account.lease.subtract(bytes));
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

    fn root(limit_bytes: usize) -> Rc<Account> {
        Account::of(Ledger::root(1, limit_bytes))
    }

    #[test]
    fn shards_hold_no_more_than_the_limit_together() {
        let ledger = Ledger::root(2, 6400);
        let shards = [(); 2].map(|()| Account::of(ledger.clone()));
        let kinds = shards.each_ref().map(|all| Account::shared_below(all, "kind", 4));
        let connection = Account::below(&kinds[0], 1);
        assert_eq!([connection.limit_bytes(), kinds[1].limit_bytes()], [800, 3200]);
        let own = connection.try_hold(800).unwrap();
        let rest = kinds[1].try_hold(2300).unwrap();
        assert!(kinds.iter().all(|kind| kind.try_hold(101).is_none()), "of both shards");
        assert!(shards[1].try_hold(3100).is_some(), "only the kind is full");
        assert_eq!((kinds[0].refused(), kinds[1].refused(), ledger.refused()), (2, 2, 2));
        drop((own, rest));
        let unused_bytes = kinds[0].lease.used_by_all() + kinds[1].lease.used_by_all();
        assert!(unused_bytes <= 3200 / 16, "{unused_bytes}");
        assert!(kinds[1].try_hold(3200 - 3200 / 16).is_some());
    }

    #[test]
    fn a_refusal_above_takes_nothing_below() {
        let ledger = Ledger::root(2, 800);
        let [one, other] = [(); 2].map(|()| Account::of(ledger.clone()));
        let below = Account::below(&one, 8);
        let held = other.hold(790);
        assert!(below.try_hold(20).is_none());
        assert_eq!((below.held_bytes(), one.lease.used()), (0, 0));
        assert!(one.is_scarce() && !one.is_full());
        drop(held);
    }

    #[test]
    fn held_bytes_count_in_every_account_above_until_dropped() {
        let all = root(800);
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
        let all = root(800);
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
        let all = root(800);
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
        let all = root(80);
        let held = all.hold(100);
        assert!(all.try_hold(1).is_none());
        all.set_root_limit(8);
        assert_eq!(all.held_bytes(), 100);
        drop(held);
        assert!(all.try_hold(8).is_some());
    }

    #[test]
    fn an_account_is_full_with_its_own_limit_or_one_above() {
        let all = root(80);
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
