//! [`UnusableHash`]: why the hash of a password is not accepted.
//!
//! Returned when a hash is read. Invariant: it has nothing of the hash, which may be the password itself.

use std::fmt;

/// Why a hash is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnusableHash {
    /// It is the password itself, or of an unknown kind.
    Unknown,
    /// A kind that is guessed fast.
    Weak(&'static str),
    /// It is cut or malformed.
    Malformed,
    /// A verification would take too long.
    Costly,
}

impl fmt::Display for UnusableHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("it is not a hash of bcrypt, Argon2, SHA-2, MD5 or SHA-1"),
            Self::Weak(name) => {
                write!(f, "{name} is guessed too fast: use bcrypt (htpasswd -B) or Argon2")
            }
            Self::Malformed => f.write_str("the hash is cut or malformed"),
            Self::Costly => f.write_str("a verification would take many seconds or much memory"),
        }
    }
}

impl std::error::Error for UnusableHash {}
