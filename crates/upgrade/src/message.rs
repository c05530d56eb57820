//! The messages of an upgrade, over [`outboard_ring::control`].

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Old gateway → starter. The starter answers [`ToStarter::Start`] only.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToStarter {
    /// Start a successor. Carries its standard input, output and error.
    Start,
    /// Kill it.
    Kill,
}

/// Starter → old gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromStarter {
    Started { pid: u32 },
    Failed { why: String },
}

/// Old gateway → new gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToSuccessor {
    /// Carries some of the sockets.
    Sockets,
    /// There are no more sockets. The files are removed by the server that ends last.
    End { files: Vec<PathBuf> },
    /// The old server accepts no more connections.
    Yours,
    /// The upgrade is given up.
    GiveUp,
}

/// New gateway → old gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromSuccessor {
    /// It accepts connections.
    Ready,
    /// It does not start.
    Failed { why: String },
}
