//! [`Verified`]: credentials that were verified a short time ago, so that each page does not cost a hash.
//!
//! Shared by all threads. Invariants: no password is held, but a keyed hash (HMAC-SHA-256, by a random key of
//! this process) of it, its user and the user's hash, so that another hash is another entry; an entry is
//! held for five to ten minutes; the memory is bounded; only successes are entries.

use super::{Credentials, Users};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use aws_lc_rs::rand::SystemRandom;
use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How long one of the two sets takes entries.
const SET_MS: u64 = 300_000;
/// Entries of a set.
const SET_MAX: usize = 16_384;

/// See the module.
pub struct Verified {
    /// Generated for the first credentials: the first random number of a process takes 40 ms, which the start of a
    /// server without passwords does not wait for. `None` if the system has no random numbers: nothing is held then.
    key: LazyLock<Option<hmac::Key>>,
    sets: Mutex<Sets>,
}

#[derive(Default)]
struct Sets {
    present: HashSet<[u8; 32]>,
    previous: HashSet<[u8; 32]>,
    changed_ms: u64,
}

impl Default for Verified {
    fn default() -> Self {
        let key = || hmac::Key::generate(HMAC_SHA256, &SystemRandom::new()).ok();
        Self { key: LazyLock::new(key), sets: Mutex::default() }
    }
}

impl Verified {
    /// Whether these credentials were verified for these users.
    pub fn contains(&self, users: &Users, credentials: &Credentials, now_ms: u64) -> bool {
        let Some(tag) = self.tag(users, credentials) else { return false };
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        sets.turn(now_ms);
        sets.present.contains(&tag) || sets.previous.contains(&tag)
    }

    /// Holds credentials that were verified.
    pub fn insert(&self, users: &Users, credentials: &Credentials, now_ms: u64) {
        let Some(tag) = self.tag(users, credentials) else { return };
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        sets.turn(now_ms);
        sets.present.insert(tag);
    }

    /// `None` for an unknown user.
    fn tag(&self, users: &Users, credentials: &Credentials) -> Option<[u8; 32]> {
        let mut context = hmac::Context::with_key(self.key.as_ref()?);
        let hash = users.hash(&credentials.user)?.identity();
        for part in [credentials.user.as_bytes(), &hash, &credentials.password] {
            context.update(&part.len().to_le_bytes());
            context.update(part);
        }
        context.sign().as_ref().try_into().ok()
    }
}

impl Sets {
    fn turn(&mut self, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(self.changed_ms);
        if age_ms < SET_MS && self.present.len() < SET_MAX {
            return;
        }
        self.previous = std::mem::take(&mut self.present);
        if age_ms >= 2 * SET_MS {
            self.previous.clear();
        }
        self.changed_ms = now_ms;
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verified")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PasswordHash;

    fn users(salt: [u8; 16]) -> Users {
        let hash = bcrypt::hash_with_salt(b"secret", 4, salt).unwrap().to_string();
        Users::new([("alice".to_owned(), PasswordHash::parse(&hash).unwrap())])
    }

    fn credentials(user: &str, password: &str) -> Credentials {
        Credentials { user: user.to_owned(), password: password.as_bytes().to_vec() }
    }

    #[test]
    fn verified_credentials_are_held_for_a_time() {
        let (verified, users, right) =
            (Verified::default(), users([1; 16]), credentials("alice", "a"));
        assert!(!verified.contains(&users, &right, 0));
        verified.insert(&users, &right, 0);
        assert!(verified.contains(&users, &right, SET_MS));
        assert!(!verified.contains(&users, &credentials("alice", "b"), SET_MS));
        assert!(!verified.contains(&users, &credentials("bob", "a"), SET_MS));
        assert!(!verified.contains(&users, &right, 2 * SET_MS));
        verified.insert(&users, &right, 2 * SET_MS);
        assert!(!verified.contains(&users, &right, 9 * SET_MS));
    }

    #[test]
    fn another_hash_of_the_user_is_another_entry() {
        let (verified, right) = (Verified::default(), credentials("alice", "a"));
        verified.insert(&users([1; 16]), &right, 0);
        assert!(!verified.contains(&users([2; 16]), &right, 0));
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let (verified, users) = (Verified::default(), users([1; 16]));
        for number in 0..3 * SET_MAX {
            verified.insert(&users, &credentials("alice", &number.to_string()), 0);
        }
        let sets = verified.sets.lock().unwrap();
        assert!(sets.present.len() + sets.previous.len() <= 2 * SET_MAX);
        drop(sets);
        let last = (3 * SET_MAX - 1).to_string();
        assert!(verified.contains(&users, &credentials("alice", &last), 0));
    }
}
