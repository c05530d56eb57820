//! What a process of the server gives up for good: files and signals by Landlock, system calls by seccomp.
//!
//! Used by the PHP host for an app's zygote, whose workers inherit it with all programs that they
//! start, and by the gateway once it has dropped root. Invariants: a restriction is never lifted; a
//! kernel that lacks one is not an error, and the caller learns of it; a denied system call fails with
//! `EPERM` and a denied file with `EACCES`, as they do for a user without the right.

#![forbid(unsafe_code)]

mod files;
mod filter;
mod system_calls;

pub use files::{Enforced, Files, confine_server, isolate, restrict_files};
pub use filter::{Filter, Program};
pub use system_calls::{Profile, name_of, rule_of};

/// Why a restriction was refused by the kernel, or could not be described to it.
#[derive(Debug)]
pub enum Error {
    /// Landlock.
    Landlock(landlock::RulesetError),
    /// The filter of system calls.
    Filter(seccompiler::BackendError),
    /// Its installation.
    Install(seccompiler::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Landlock(_) => write!(f, "the kernel refuses the rules for files (Landlock)"),
            Self::Filter(_) => write!(f, "the filter of system calls cannot be built"),
            Self::Install(_) => {
                write!(f, "the kernel refuses the filter of system calls (seccomp)")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Landlock(error) => Some(error),
            Self::Filter(error) => Some(error),
            Self::Install(error) => Some(error),
        }
    }
}
