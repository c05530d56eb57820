//! What gateway and spawner say to each other: a message each way, in turn, by
//! [`outboard_ring::control`].

use crate::grants::Grants;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Gateway → spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first, while the gateway is root still.
    Begin(Grants),
    /// Start a PHP host. Carries its standard input and where it prints.
    Start { program: PathBuf, uid: u32, gid: u32 },
    /// Kill what was started as this number.
    Kill(u64),
    /// The same, and nobody is going to ask for it again.
    Forget(u64),
    /// How did what was started as this number end?
    Look(u64),
    /// Open a file for reading.
    Read(PathBuf),
    /// Open a log for appending.
    Append(PathBuf),
    /// Remove what the server leaves behind.
    Remove(PathBuf),
}

/// Spawner → gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    /// A host runs.
    Started {
        number: u64,
        pid: u32,
    },
    /// The raw status of wait(2), once it has ended.
    Ended(Option<i32>),
    /// Comes with a descriptor.
    Opened,
    /// It may not, or it failed with this error number.
    Failed {
        why: String,
        errno: Option<i32>,
    },
}
