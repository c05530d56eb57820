//! [`Cause`]: why a snapshot was retired.

use std::fmt;
use std::path::PathBuf;

/// Why a snapshot was retired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A file has changed that its start had read.
    File(PathBuf),
    /// Data have changed that its start had read.
    Key(String),
    /// A script asked for it.
    Script,
    /// An administrator asked for it.
    Administrator,
    /// It is as old as a snapshot may be, or will be soon.
    Age,
    /// The start for an earlier cause had failed.
    Retry,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Key(key) => write!(f, "key {key}"),
            Self::Script => f.write_str("a script"),
            Self::Administrator => f.write_str("an administrator"),
            Self::Age => f.write_str("its age"),
            Self::Retry => f.write_str("another attempt"),
        }
    }
}
