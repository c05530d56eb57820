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
    /// Carries the end of a link (`crate::Link`), for what only one process can have open.
    Link { version: u32, facts: LinkFacts },
    /// There are no more sockets. The files are removed by the server that ends last.
    End { files: Vec<PathBuf> },
    /// The entity store is closed, and no task is started.
    Released,
    /// Everything that moves by the link was sent.
    Complete,
    /// The old server accepts no more connections.
    Yours,
    /// The upgrade is given up.
    GiveUp,
}

/// New gateway → old gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromSuccessor {
    /// PHP has started. Only what one process can have open is missing.
    Prepared,
    /// It has opened the entity store.
    Acquired,
    /// It accepts connections.
    Ready,
    /// It does not start.
    Failed { why: String },
}

/// What the old server has that only one process can have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFacts {
    /// The directory of the entity store.
    pub store: Option<PathBuf>,
    /// Its namespaces.
    pub namespaces: Vec<String>,
    /// Processes of apps that it runs, as the gateway names them.
    #[serde(default)]
    pub processes: Vec<String>,
}
