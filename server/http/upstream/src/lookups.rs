//! [`Lookups`]: the number of name lookups under way, in total and for each account, whichever loop waits
//! for them.
//!
//! Shared by the [`crate::dns`] of every loop. Invariant: a task that may not begin a lookup is woken at
//! the end of each.

use crate::account::Account;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The most concurrent lookups.
pub(crate) const LOOKUPS_MAX: usize = 256;
/// The most concurrent lookups of one account.
pub(crate) const LOOKUPS_PER_ACCOUNT: usize = 32;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Lookups(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    waiting: Vec<Waker>,
}

impl Lookups {
    /// The right to a lookup. Without it the task is woken when another lookup has ended.
    pub(crate) fn begin(
        self: &Arc<Self>,
        account: Option<&Arc<Account>>,
        waker: &Waker,
    ) -> Option<LookupRight> {
        let mut state = self.lock();
        let is_full = state.under_way >= LOOKUPS_MAX;
        // The owner holds one. The lock prevents that two tasks see the same count.
        let of_account = account.map(|account| account.lookups());
        if is_full || of_account.is_some_and(|one| Arc::strong_count(one) > LOOKUPS_PER_ACCOUNT) {
            if !state.waiting.iter().any(|other| other.will_wake(waker)) {
                state.waiting.push(waker.clone());
            }
            return None;
        }
        state.under_way += 1;
        Some(LookupRight { lookups: self.clone(), of_account: of_account.cloned() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of lookups under way.
    #[cfg(test)]
    pub(crate) fn under_way(&self) -> usize {
        self.lock().under_way
    }
}

/// The right to one lookup.
#[derive(Debug)]
pub(crate) struct LookupRight {
    lookups: Arc<Lookups>,
    of_account: Option<Arc<()>>,
}

impl Drop for LookupRight {
    fn drop(&mut self) {
        let mut state = self.lookups.lock();
        state.under_way -= 1;
        drop(self.of_account.take());
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}
