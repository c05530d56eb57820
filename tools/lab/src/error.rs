//! The error type of the lab: who failed, at what, and what to do about it.
//!
//! Every fallible function of the crate returns it; the command line prints it and exits with 1. A
//! missed target is not an error but a [`crate::verdict::Verdict`].

use std::{fmt, io};

use outboard_profile::ProfileError;

/// Why a measurement could not be taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call or file operation failed.
    Io {
        /// The action, as a verb phrase.
        action: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program of a peer is not installed.
    MissingProgram {
        /// The path looked for.
        program: String,
        /// The Debian package that brings it.
        package: &'static str,
    },
    /// A helper program ended unsuccessfully.
    Program {
        /// Its name.
        program: String,
        /// Exit status and output.
        output: String,
    },
    /// A stack was started and does not respond, or ended at once.
    NotAnswering {
        /// The stack's name.
        stack: String,
        /// The end of its log.
        log: String,
    },
    /// Stacks return different bytes for one path, so comparing their cost means nothing.
    DifferentBytes {
        /// The requested path.
        path: String,
        /// Status, length and beginning of each response.
        responses: Vec<String>,
    },
    /// A profile could not be taken.
    Profile(ProfileError),
    /// A response that the lab does not understand.
    Unexpected {
        /// The sender of the response.
        who: String,
        /// The response.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::MissingProgram { program, package } => {
                write!(f, "{program} is missing: install it with `apt-get install {package}`")
            }
            Self::Program { program, output } => write!(f, "{program} failed: {output}"),
            Self::NotAnswering { stack, log } => {
                write!(f, "{stack} does not answer; the end of its log:\n{log}")
            }
            Self::DifferentBytes { path, responses } => {
                write!(f, "the stacks answer {path} differently, so they cannot be compared:")?;
                responses.iter().try_for_each(|response| write!(f, "\n  {response}"))
            }
            Self::Profile(error) => error.fmt(f),
            Self::Unexpected { who, what } => write!(f, "{who}: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Profile(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ProfileError> for Error {
    fn from(error: ProfileError) -> Self {
        Self::Profile(error)
    }
}

/// The result of a fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds the verb phrase that an [`io::Error`] lacks.
pub trait ResultExt<T> {
    /// Turns the failure into [`Error::Io`] with the action.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> ResultExt<T> for std::result::Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Io { action: what(), source: source.into() })
    }
}
