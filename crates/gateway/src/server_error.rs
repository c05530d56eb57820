//! [`ServerError`]: why a server did not start, or a reload failed.

use outboard_config::Diagnostics;
use outboard_http_server::BindError;
use outboard_php_pool::pool::StartError;
use std::io;

/// Why a server did not start, or a reload failed.
#[derive(Debug)]
pub enum ServerError {
    /// The configuration is invalid.
    Config(Diagnostics),
    /// An address cannot be listened on.
    Bind(BindError),
    /// PHP does not start.
    Php(StartError),
    /// A directory, file or user of the configuration cannot be used.
    Setup(String),
    /// The spawner, which starts PHP for a gateway without root's rights, has exited.
    Spawner,
    /// The event loop failed.
    Io(io::Error),
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(diagnostics) => diagnostics.fmt(f),
            Self::Bind(error) => error.fmt(f),
            Self::Php(error) => error.fmt(f),
            Self::Setup(message) => f.write_str(message),
            Self::Spawner => f.write_str("the spawner, which starts PHP, has exited; start again"),
            Self::Io(error) => write!(f, "the event loop failed: {error}"),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(_) | Self::Setup(_) | Self::Spawner => None,
            Self::Bind(error) => Some(error),
            Self::Php(error) => Some(error),
            Self::Io(error) => Some(error),
        }
    }
}

impl From<BindError> for ServerError {
    fn from(error: BindError) -> Self {
        Self::Bind(error)
    }
}

impl From<StartError> for ServerError {
    fn from(error: StartError) -> Self {
        Self::Php(error)
    }
}
