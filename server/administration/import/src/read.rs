//! [`Read`]: how files are read, and [`ImportError`]: why one is not understood.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Reads a file as text.
pub type Read<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Why a file is not understood.
#[derive(Debug)]
pub enum ImportError {
    /// The file cannot be read.
    Read(PathBuf, io::Error),
    /// The file is not in the format of the server.
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// There is no site in it.
    NoSite(PathBuf),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(file, error) => write!(f, "{} cannot be read: {error}", file.display()),
            Self::Syntax { file, line, message } => {
                write!(f, "{}:{line}: {message}", file.display())
            }
            Self::NoSite(file) => {
                write!(f, "{} has no site with a document root", file.display())
            }
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(_, error) => Some(error),
            _ => None,
        }
    }
}
