//! [`Options`]: how the command line runs a server.

use crate::server_event;
use outboard_config::{Config, Diagnostics, Open};
use outboard_upgrade::{LinkFacts, Predecessor, Starter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads a configuration, and opens files by the given function.
pub type Load = Arc<dyn Fn(Open<'_>) -> Result<Config, Diagnostics> + Send + Sync>;

/// How to run a server.
pub struct Options {
    /// Reads the configuration, at the start and at each reload.
    pub load: Load,
    /// The name of a named server, for process titles and its status.
    pub name: Option<String>,
    /// An admin socket in addition to the configured one, or instead of it.
    pub admin_socket: Option<AdminSocket>,
    /// The PHP host, unless the configuration names one.
    pub host_binary: PathBuf,
    /// The program whose command `spawner` starts PHP after the gateway dropped root's
    /// privileges; `None`: the gateway does not change its user.
    pub spawner: Option<PathBuf>,
    /// Removed when the server stops.
    pub pid_file: Option<PathBuf>,
    /// Inherited sockets; those with a configured address are used.
    pub sockets: Vec<OwnedFd>,
    /// Starts a newer program in the place of this one; `None`: the server cannot be upgraded.
    pub starter: Option<Starter>,
    /// The server that this one replaces.
    pub predecessor: Option<Arc<Predecessor>>,
    /// The end of a link to it, if it has what only one process can have.
    pub link: Option<(OwnedFd, LinkFacts)>,
    /// Files of inherited sockets, which are removed when the server stops.
    pub files: Vec<PathBuf>,
    /// Receives the events of the server.
    pub notify: server_event::Listener,
    /// The interval of events that the event loop runs.
    pub alive_every_ms: Option<u64>,
}

/// The admin socket that the command line requests.
#[derive(Debug, Clone)]
pub enum AdminSocket {
    /// Unless the configuration names one. It may be in use by another server of the user.
    IfFree(PathBuf),
    /// Always; otherwise the server does not start.
    Always(PathBuf),
}
