//! [`Irreversible`]: why a worker ends after its response instead of being rewound.
//!
//! Returned by all that puts something back, and logged once.

/// Why a process cannot be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Irreversible {
    /// A child process runs.
    Child,
    /// A thread runs.
    Thread,
    /// Memory of the start was unmapped that the snapshot does not have.
    Mapping,
    /// Native code has changed something of the process that cannot be put back.
    Native(&'static str),
    /// A call of the kernel has failed.
    Kernel(&'static str),
}

impl std::fmt::Display for Irreversible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Child => f.write_str("a program that the request has started still runs"),
            Self::Thread => f.write_str("a thread that the request has started still runs"),
            Self::Mapping => {
                f.write_str("the request has unmapped memory that the start had mapped")
            }
            Self::Native(what) => write!(f, "native code has changed {what} of the process"),
            Self::Kernel(call) => write!(f, "{call} has failed"),
        }
    }
}
