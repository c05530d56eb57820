//! The one error type of the lab: who failed, at what, and what to do about it.
//!
//! Every fallible call of the crate returns it; the command line prints it and exits 1. A bar that is
//! missed is not an error: that is a [`crate::verdict::Verdict`].

use std::{fmt, io};

/// Why a measurement could not be taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call or file operation failed.
    Io {
        /// What was being done, as a verb phrase.
        doing: String,
        /// The system's answer.
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
        /// Exit status and what it printed.
        output: String,
    },
    /// A stack was started and never answered, or ended at once.
    NotAnswering {
        /// The stack's name.
        stack: String,
        /// The end of its log.
        log: String,
    },
    /// Two stacks answered one path differently, so comparing their cost means nothing.
    DifferentBytes {
        /// The path asked for.
        path: String,
        /// Status, length and beginning of each answer.
        answers: Vec<String>,
    },
    /// Something answered in a way that the lab does not understand.
    Unexpected {
        /// Who answered.
        who: String,
        /// What came instead of what was expected.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::MissingProgram { program, package } => {
                write!(f, "{program} is missing: install it with `apt-get install {package}`")
            }
            Self::Program { program, output } => write!(f, "{program} failed: {output}"),
            Self::NotAnswering { stack, log } => {
                write!(f, "{stack} does not answer; the end of its log:\n{log}")
            }
            Self::DifferentBytes { path, answers } => {
                write!(f, "the stacks answer {path} differently, so they cannot be compared:")?;
                answers.iter().try_for_each(|answer| write!(f, "\n  {answer}"))
            }
            Self::Unexpected { who, what } => write!(f, "{who}: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Shorthand of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds the verb phrase that an [`io::Error`] lacks.
pub trait Doing<T> {
    /// Turns the failure into [`Error::Io`], saying what was being done.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Io { doing: what(), source: source.into() })
    }
}
