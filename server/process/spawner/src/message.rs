//! The protocol of gateway and spawner, over [`outboard_ring::control`]: one response for each request but
//! [`Request::Kill`] and [`Request::Forget`], which have none, so that the gateway's loop can send them
//! without waiting.

use crate::grants::Grants;
use outboard_ring::control::ControlGroup;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Gateway → spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The first request, sent while the gateway is root.
    Begin(Grants),
    /// Start a PHP host. Carries its standard input and its output.
    Start { program: PathBuf, uid: u32, gid: u32, group: Option<ControlGroup> },
    /// Kill the child with this number.
    Kill(u64),
    /// Kill the child with this number and forget it.
    Forget(u64),
    /// Report how the child with this number has exited.
    Status(u64),
    /// Open a file for reading.
    Read(PathBuf),
    /// Open a log for appending.
    Append(PathBuf),
    /// Remove a leftover.
    Remove(PathBuf),
}

/// Spawner → gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    Done,
    /// A host was started. Carries its pidfd (pidfd_open(2)), which is readable once it has exited.
    Started {
        number: u64,
        pid: u32,
    },
    /// A child has exited with this status, as of waitpid(2); `None`: it has not, or there is none.
    Exited(Option<i32>),
    /// Carries a descriptor.
    Opened,
    /// The request was not granted, or failed with this error number.
    Failed {
        why: String,
        errno: Option<i32>,
    },
}
