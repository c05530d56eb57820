//! What can go wrong, and whose fault it is.

use crate::record::ID_MAX_BYTES;
use std::fmt;
use std::path::PathBuf;

/// Why a store does not open.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder or a file in it cannot be used.
    Io {
        /// What it was done to.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The system has no room for the threads of the store.
    Threads {
        /// What it says.
        source: std::io::Error,
    },
    /// A file is not what this program wrote; nothing of the namespace can be read by it.
    Damaged {
        /// The file, or the folder of the namespace.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { folder } => write!(
                f,
                "the entity store {} is in use; stop the server that has it, or ask that server",
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

impl std::error::Error for OpenError {}

/// Why a record was not read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// More was asked for than can be done in time; try again later.
    Overloaded,
    /// No record can have this name: it is empty, or longer than [`crate::ID_MAX_BYTES`].
    NoName {
        /// Its length.
        bytes: usize,
    },
    /// What the write demands of the present record does not hold.
    ConditionFailed {
        /// The version that is there.
        present: Option<u64>,
    },
    /// The value to count on is no whole number, or the sum is too large.
    NotANumber,
    /// The disk, or the memory of an in-memory namespace, is full. Nothing was changed.
    Full,
    /// Fewer nodes than were asked for have said that they have the record. It was written.
    TooFewCopies {
        /// So many have.
        answered: u32,
    },
    /// Redis did not answer in time; a write may or may not have been done.
    Unreachable(String),
    /// The file that holds the record does not match its checksum.
    Damaged(String),
    /// The disk failed; what was asked for may or may not have been done.
    Failed(String),
}

impl StoreError {
    /// A thread of the store has ended by a bug.
    pub(crate) fn lost() -> Self {
        Self::Failed("a thread of the store has ended; restart the server".to_owned())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded => f.write_str("the entity store is overloaded; try again later"),
            Self::NoName { bytes } => {
                write!(f, "a name of {bytes} bytes; records have names of 1 to {ID_MAX_BYTES}")
            }
            Self::ConditionFailed { present: Some(version) } => {
                write!(f, "the record is there with version {version}")
            }
            Self::ConditionFailed { present: None } => f.write_str("there is no such record"),
            Self::NotANumber => f.write_str("the value is no whole number of 64 bits"),
            Self::Full => f.write_str("the entity store has no room left"),
            Self::TooFewCopies { answered } => {
                write!(f, "the record was written, and {answered} nodes have it so far")
            }
            Self::Unreachable(why) => write!(f, "Redis does not answer: {why}"),
            Self::Damaged(what) => write!(f, "the entity store is damaged: {what}"),
            Self::Failed(what) => write!(f, "the entity store failed: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}
