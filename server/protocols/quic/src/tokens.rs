//! [`Tokens`]: what proves the address of a client before its handshake is complete (RFC 9000 8.1).
//!
//! Shared by the threads of an address, and by all settings. Invariant: a token of an earlier connection proves an
//! address once (RFC 9000 8.1.4).

use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::{TokenLog, TokenReuseError};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Tokens of this age are not accepted: the address may be that of another client by then.
pub(crate) const LIFETIME: Duration = Duration::from_secs(3600);
/// So many used tokens are remembered, of 16 bytes each.
const USED_MAX: usize = 16_384;

/// See the module.
#[derive(Clone)]
pub(crate) struct Tokens {
    pub(crate) key: Arc<dyn HandshakeTokenKey>,
    pub(crate) used: Arc<UsedTokens>,
}

/// Numbers of the tokens that were used. Those issued before the first of them are not accepted.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    numbers: HashSet<u128>,
    since: Option<SystemTime>,
}

impl UsedTokens {
    fn take(&self, number: u128, issued: SystemTime, now: SystemTime) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.since.is_some_and(|since| issued <= since) {
            return false;
        }
        if used.numbers.len() >= USED_MAX {
            used.numbers.clear();
            used.since = Some(now);
            return false;
        }
        used.numbers.insert(number)
    }
}

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        issued: SystemTime,
        _: Duration,
    ) -> Result<(), TokenReuseError> {
        let is_first = self.take(nonce, issued, SystemTime::now());
        if is_first { Ok(()) } else { Err(TokenReuseError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    #[test]
    fn a_token_is_used_once_however_many_there_are() {
        let used = UsedTokens::default();
        for number in 0..USED_MAX as u128 {
            assert!(used.take(number, at(1), at(2)));
        }
        assert!(!used.take(7, at(1), at(2)), "it was used");
        // What cannot be remembered is not accepted, nor is what may have been forgotten.
        assert!(!used.take(USED_MAX as u128, at(1), at(3)));
        assert!(!used.take(7, at(1), at(4)));
        assert!(used.take(8, at(4), at(5)));
        assert!(!used.take(8, at(4), at(5)));
    }

    #[test]
    fn a_token_that_was_used_is_an_error_to_the_protocol() {
        let used = UsedTokens::default();
        let issued = SystemTime::now();
        assert!(used.check_and_insert(1, issued, LIFETIME).is_ok());
        assert!(used.check_and_insert(1, issued, LIFETIME).is_err());
        assert!(used.check_and_insert(2, issued, LIFETIME).is_ok());
    }

    #[test]
    fn threads_that_race_with_one_token_use_it_once() {
        let used = UsedTokens::default();
        let takes = || (0..200).filter(|number| used.take(*number, at(1), at(2))).count();
        let counts = std::thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(takes));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(counts.into_iter().sum::<usize>(), 200);
    }
}
