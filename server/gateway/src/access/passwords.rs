//! [`Passwords`]: verifies passwords on a few threads.
//!
//! Invariants: the event loop waits for no hash; a client has [`MAX_OF_CLIENT`] verifications at the same
//! time, and all have [`MAX_PENDING`], also those whose requests are given up, so that wrong passwords do not
//! keep others from logging in; one that was right is not computed again for a while.

use outboard_access::{Credentials, Users, Verified};
use outboard_reactor::{Threads, now_ms};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MAX_PENDING: usize = 64;
const MAX_OF_CLIENT: usize = 4;
/// More would take the processors from the requests.
const VERIFYING_THREADS: usize = 2;

static VERIFIERS: Threads = Threads::new(VERIFYING_THREADS);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Passwords {
    verified: Verified,
    pending: Arc<Mutex<HashMap<Option<IpAddr>, usize>>>,
}

/// The result of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    Wrong,
    /// Too many verifications are pending.
    Busy,
}

impl Passwords {
    /// Whether the credentials were right a short while ago.
    pub(crate) fn knows(&self, users: &Users, credentials: &Credentials) -> bool {
        self.verified.contains(users, credentials, now_ms())
    }

    /// Verifies the credentials of a client.
    pub(crate) async fn verify(
        &self,
        users: &Users,
        credentials: &Credentials,
        client: Option<IpAddr>,
    ) -> Verdict {
        if self.verified.contains(users, credentials, now_ms()) {
            return Verdict::Right;
        }
        let Some(place) = Place::take(&self.pending, client) else { return Verdict::Busy };
        let (of, theirs) = (users.clone(), credentials.clone());
        let work = move || {
            let is_right = of.verify(&theirs);
            drop(place);
            is_right
        };
        if !VERIFIERS.run(0, work).await {
            return Verdict::Wrong;
        }
        self.verified.insert(users, credentials, now_ms());
        Verdict::Right
    }
}

/// A pending verification, which its job has until it ends.
struct Place {
    pending: Arc<Mutex<HashMap<Option<IpAddr>, usize>>>,
    client: Option<IpAddr>,
}

impl Place {
    fn take(
        pending: &Arc<Mutex<HashMap<Option<IpAddr>, usize>>>,
        client: Option<IpAddr>,
    ) -> Option<Self> {
        let mut clients = lock(pending);
        let own = clients.get(&client).copied().unwrap_or_default();
        if own >= MAX_OF_CLIENT || clients.values().sum::<usize>() >= MAX_PENDING {
            return None;
        }
        clients.insert(client, own + 1);
        Some(Self { pending: pending.clone(), client })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut clients = lock(&self.pending);
        let own = clients.remove(&self.client).unwrap_or_default();
        if own > 1 {
            clients.insert(self.client, own - 1);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_by_client_and_in_total() {
        let pending = Arc::default();
        let client = |number: u8| Some(IpAddr::from([192, 0, 2, number]));
        let own: Vec<_> = (0..9).filter_map(|_| Place::take(&pending, client(1))).collect();
        assert_eq!(own.len(), MAX_OF_CLIENT);
        let others: Vec<_> = (2..255).filter_map(|n| Place::take(&pending, client(n))).collect();
        assert_eq!(others.len(), MAX_PENDING - MAX_OF_CLIENT);
        drop((own, others));
        assert!(lock(&pending).is_empty() && Place::take(&pending, client(1)).is_some());
    }
}
