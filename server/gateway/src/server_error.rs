//! [`ServerError`]: why a server did not start, or a reload failed.

use outboard_config::Diagnostics;
use outboard_http_server::BindError;
use outboard_php_pool::pool::StartError;
use std::io;

/// Why a server did not start, or a reload was given up.
#[derive(Debug)]
pub enum ServerError {
    /// The configuration is wrong.
    Config(Diagnostics),
    /// An address cannot be listened on.
    Bind(BindError),
    /// PHP does not start.
    Php(StartError),
    /// A directory, file or user of the configuration cannot be used.
    Setup {
        /// What cannot be used, and the remedy.
        message: String,
        /// The error of the system, if one was the cause; the message includes it.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The process that starts PHP for a gateway that gave up root has gone.
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
            Self::Setup { message, .. } => f.write_str(message),
            Self::Spawner => f.write_str("the spawner, which starts PHP, has exited; start again"),
            Self::Io(error) => write!(f, "the event loop failed: {error}"),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(diagnostics) => Some(diagnostics),
            Self::Bind(error) => Some(error),
            Self::Php(error) => Some(error),
            Self::Setup { source, .. } => source.as_deref().map(|source| source as _),
            Self::Spawner => None,
            Self::Io(error) => Some(error),
        }
    }
}

impl ServerError {
    /// The lines of a log: one for each error of a configuration.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Config(diagnostics) => diagnostics.lines().collect(),
            error => vec![error.to_string()],
        }
    }

    /// Something of the configuration cannot be used, for a reason that is not another error.
    pub(crate) fn setup(message: impl Into<String>) -> Self {
        Self::Setup { message: message.into(), source: None }
    }

    /// The same with its cause, which the message includes.
    pub(crate) fn setup_because(
        message: String,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Setup { message, source: Some(Box::new(cause)) }
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
