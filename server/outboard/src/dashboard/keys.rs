//! [`Keys`]: which browsers may see the dashboard.
//!
//! The URL's token is exchanged for a key once, by the page's script. A browser does not send what follows the
//! `#` of a URL, and pages of other ports do not see the key, as they would a cookie. Invariants: a token is
//! valid once; comparisons take the same time for each wrong text.

use outboard_dashboard::Secret;
use std::io;
use std::sync::{Mutex, PoisonError};

/// See the module.
#[derive(Debug)]
pub(super) struct Keys {
    token: Mutex<Option<Secret>>,
    key: Secret,
    shown: String,
}

impl Keys {
    /// A token and the key that it is exchanged for.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(super) fn new() -> io::Result<Self> {
        let token = Secret::new()?;
        let shown = token.reveal().to_owned();
        Ok(Self { token: Mutex::new(Some(token)), key: Secret::new()?, shown })
    }

    /// The token, for the URL.
    pub(super) fn token(&self) -> &str {
        &self.shown
    }

    /// The key for the token, the first time.
    pub(super) fn exchange(&self, token: &[u8]) -> Option<&str> {
        let mut valid = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        valid.take_if(|valid| valid.is(token)).map(|_| self.key.reveal())
    }

    /// Whether a browser may see data.
    pub(super) fn admits(&self, key: &[u8]) -> bool {
        self.key.is(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_once() {
        let keys = Keys::new().expect("random bytes");
        let token = keys.token().to_owned();
        assert_eq!(keys.exchange(b"other"), None);
        assert!(!keys.admits(token.as_bytes()), "it is not the key");
        let key = keys.exchange(token.as_bytes()).expect("the first time").to_owned();
        assert_eq!(keys.exchange(token.as_bytes()), None);
        assert!(keys.admits(key.as_bytes()) && !keys.admits(b""));
    }
}
