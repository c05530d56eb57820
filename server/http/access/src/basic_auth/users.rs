//! [`Users`]: the users of a rule and their password hashes.
//!
//! Created from the configuration and `htpasswd` files. Invariant: an unknown user takes as long as a known
//! one, so that the time does not tell which names exist.

use super::{Credentials, PasswordHash, UnusableHash};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Users(Arc<HashMap<String, PasswordHash>>);

/// A line of a file that is not a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableUser {
    /// Its number, from 1.
    pub line: usize,
    /// The name, if the line has one.
    pub user: Option<String>,
    /// Why.
    pub why: UnusableHash,
}

impl Users {
    /// Of these; of two with the same name the last counts.
    pub fn new(users: impl IntoIterator<Item = (String, PasswordHash)>) -> Self {
        Self(Arc::new(users.into_iter().collect()))
    }

    /// Reads the lines of an `htpasswd` file: `NAME:HASH`, and comments.
    ///
    /// # Errors
    /// The first line that is not a user.
    pub fn read(text: &str) -> Result<Vec<(String, PasswordHash)>, UnusableUser> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let user = |(index, line): (usize, &str)| {
            let unusable = |user: Option<&str>, why| UnusableUser {
                line: index + 1,
                user: user.map(str::to_owned),
                why,
            };
            let (name, rest) =
                line.split_once(':').ok_or_else(|| unusable(None, UnusableHash::Malformed))?;
            // Apache allows more fields.
            let hash = PasswordHash::parse(rest.split(':').next().unwrap_or_default());
            hash.map(|hash| (name.to_owned(), hash)).map_err(|why| unusable(Some(name), why))
        };
        lines.map(user).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Users whose passwords are guessed fast by their hashes, with the kind of hash; by name.
    pub fn weak(&self) -> Vec<(&str, &'static str)> {
        let users = self.0.iter();
        let mut weak: Vec<_> =
            users.filter_map(|(name, hash)| Some((name.as_str(), hash.weakness()?))).collect();
        weak.sort_unstable();
        weak
    }

    /// The hash of a user.
    pub fn hash(&self, user: &str) -> Option<&PasswordHash> {
        self.0.get(user)
    }

    /// Whether the password is the user's. This takes long: call it on a thread.
    pub fn verify(&self, credentials: &Credentials) -> bool {
        match self.hash(&credentials.user) {
            Some(hash) => hash.verify(&credentials.password),
            None => {
                let another = self.0.values().next();
                // The time of a known user.
                let _ = another.map(|hash| hash.verify(&credentials.password));
                false
            }
        }
    }
}

impl fmt::Display for UnusableUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(user) = &self.user {
            write!(f, ", user `{user}`")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for UnusableUser {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_htpasswd_is_read() {
        let hash = bcrypt::hash_with_salt(b"secret", 4, *b"0123456789abcdef").unwrap();
        let text = format!("# staff\n\nalice:{hash}\n bob:{hash}:Bob B.\n");
        let users = Users::new(Users::read(&text).unwrap());
        let verify = |user: &str, password: &[u8]| {
            users.verify(&Credentials { user: user.to_owned(), password: password.to_vec() })
        };
        assert!(verify("alice", b"secret") && verify("bob", b"secret"));
        assert!(!verify("alice", b"x") && !verify("carol", b"secret") && !verify("", b"secret"));
    }

    #[test]
    fn a_line_without_a_usable_hash_is_an_error() {
        let error = |text: &str| Users::read(text).unwrap_err().to_string();
        assert!(error("a\n").starts_with("line 1: the hash is cut"));
        let weak = error("\n# x\nbob:TL.L6AZaSHlvc\n");
        assert!(weak.starts_with("line 3, user `bob`: DES of crypt"), "{weak}");
        assert!(error("bob:secret").contains("not a hash of bcrypt"));
        assert!(Users::default().is_empty());
    }

    #[test]
    fn users_with_weak_hashes_are_listed_by_name() {
        let text = "bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\nalice:$apr1$ab$S8K6Sgp3W8c9Jb6LxgywZ.\n\
                    carol:$5$saltstring$C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi.\n";
        let users = Users::new(Users::read(text).unwrap());
        assert_eq!(users.weak(), [("alice", "MD5"), ("bob", "SHA-1")]);
    }
}
