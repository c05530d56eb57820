//! Errors of the store.

use crate::record::ID_MAX_BYTES;
use std::fmt;
use std::path::PathBuf;

/// Why a store cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the store open.
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder or a file in it cannot be used.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The threads of the store cannot be started.
    Threads {
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file has unexpected content; the namespace cannot be read.
    Damaged {
        /// The file, or the folder of the namespace.
        path: PathBuf,
        /// The mismatch.
        what: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { folder } => write!(
                f,
                "the entity store {} is in use; stop the server that uses it, or send the request to that server",
                folder.display()
            ),
            Self::Io { path, source } => {
                write!(f, "the entity store cannot use {}: {source}", path.display())
            }
            Self::Threads { source } => {
                write!(f, "the entity store cannot start its threads: {source}")
            }
            Self::Damaged { path, what } => write!(
                f,
                "the entity store is damaged at {}: {what}; restore a backup",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Threads { source } => Some(source),
            Self::Locked { .. } | Self::Damaged { .. } => None,
        }
    }
}

/// Why a read or write failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Too many requests wait; retry later.
    Overloaded,
    /// The key is empty, or longer than [`crate::ID_MAX_BYTES`].
    InvalidKey {
        /// The length of the key.
        bytes: usize,
    },
    /// The condition of the write does not hold.
    ConditionFailed {
        /// The present version.
        present: Option<u64>,
    },
    /// The value to increment is not an integer, or the sum overflows.
    NotANumber,
    /// The disk, or the memory of an in-memory namespace, is full. Nothing was changed.
    Full,
    /// Fewer nodes than requested have confirmed the record. It was written.
    TooFewCopies {
        /// The nodes that have confirmed.
        answered: u32,
    },
    /// Redis did not reply in time. A write may have been done.
    Unreachable(String),
    /// The file that holds the record does not match its checksum.
    Damaged(String),
    /// The disk failed. A write may have been done.
    Failed(String),
}

impl StoreError {
    /// A thread of the store has panicked.
    pub(crate) fn thread_ended() -> Self {
        Self::Failed("a thread of the store has ended; restart the server".to_owned())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded => f.write_str("the entity store is overloaded; try again later"),
            Self::InvalidKey { bytes } => {
                write!(f, "a key of {bytes} bytes; keys have 1 to {ID_MAX_BYTES}")
            }
            Self::ConditionFailed { present: Some(version) } => {
                write!(f, "the record has version {version}")
            }
            Self::ConditionFailed { present: None } => f.write_str("the record does not exist"),
            Self::NotANumber => f.write_str("the value is not a 64-bit integer"),
            Self::Full => f.write_str("the entity store is full"),
            Self::TooFewCopies { answered } => {
                write!(f, "the record was written, and {answered} nodes have confirmed it so far")
            }
            Self::Unreachable(why) => write!(f, "Redis does not reply: {why}"),
            Self::Damaged(what) => write!(f, "the entity store is damaged: {what}"),
            Self::Failed(what) => write!(f, "the entity store failed: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;
    use std::io;

    #[test]
    fn an_error_at_the_start_names_the_file_and_what_to_do() {
        let io = || io::Error::from(io::ErrorKind::PermissionDenied);
        for (error, text, has_source) in [
            (
                OpenError::Locked { folder: "/kv".into() },
                "the entity store /kv is in use; stop the server that uses it, or send the request to that server",
                false,
            ),
            (
                OpenError::Io { path: "/kv/lock".into(), source: io() },
                "the entity store cannot use /kv/lock: permission denied",
                true,
            ),
            (
                OpenError::Threads { source: io() },
                "the entity store cannot start its threads: permission denied",
                true,
            ),
            (
                OpenError::Damaged { path: "/kv/a".into(), what: "no magic".into() },
                "the entity store is damaged at /kv/a: no magic; restore a backup",
                false,
            ),
        ] {
            assert_eq!(error.to_string(), text);
            let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            assert_eq!(source.is_some(), has_source, "{text}");
        }
    }

    #[test]
    fn an_error_of_a_call_says_whether_a_write_was_done() {
        for (error, text) in [
            (StoreError::Overloaded, "the entity store is overloaded; try again later"),
            (StoreError::InvalidKey { bytes: 0 }, "a key of 0 bytes; keys have 1 to 4096"),
            (StoreError::ConditionFailed { present: Some(7) }, "the record has version 7"),
            (StoreError::ConditionFailed { present: None }, "the record does not exist"),
            (StoreError::NotANumber, "the value is not a 64-bit integer"),
            (StoreError::Full, "the entity store is full"),
            (
                StoreError::TooFewCopies { answered: 2 },
                "the record was written, and 2 nodes have confirmed it so far",
            ),
            (StoreError::Unreachable("refused".into()), "Redis does not reply: refused"),
            (StoreError::Damaged("a file".into()), "the entity store is damaged: a file"),
            (
                StoreError::thread_ended(),
                "the entity store failed: a thread of the store has ended; restart the server",
            ),
        ] {
            assert_eq!(error.to_string(), text);
            assert!(error.source().is_none());
        }
    }
}
